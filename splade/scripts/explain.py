"""Why a model decides as it does: the commands `explain`, `why-not` and `flip`."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.console import Console

from splade.files import require_writable_target
from splade.scripts.console import AllTokens, MergeInflections, console
from splade.scripts.corpus import SkipBadRows, tell_beside
from splade.scripts.given_texts import read_texts
from splade.scripts.report import write_explanations

if TYPE_CHECKING:
    from splade.inference import Window
    from splade.models.lexical_sae import LexicalSAE
    from splade.report.shown_explanation import ShownExplanation

NOT_CALIBRATED = (
    "this model was saved without a calibration: there are no warnings about off-topic texts; add one from its run's "
    "data with `lexical-sae calibrate MODEL`"
)
PATIENCE = 2.0
"""Seconds after which a bar appears."""

Model = Annotated[Path, typer.Argument(help="Folder of a saved model.")]
Text = Annotated[str, typer.Argument(help="A text in quotes.")]
Top = Annotated[int, typer.Option(help="How many words to show.", min=1)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object per line instead of a table.")]
Method = Annotated[
    str,
    typer.Option(
        help="dla: what each word adds here; path: the same on the way from the empty text; "
        "leave_one_out: what removing each word does."
    ),
]
Abstain = Annotated[
    float | None,
    typer.Option(help="Abstain on unusual texts, and where accuracy at that confidence is below this, e.g. 0.95."),
]
Found = TypeVar("Found")


def explain(
    model: Model,
    texts: Annotated[list[str] | None, typer.Argument(help="One or more texts, each in quotes.")] = None,
    file: Annotated[Path | None, typer.Option(help="Explain the texts of a CSV, TSV or JSONL file.")] = None,
    text_column: Annotated[str | None, typer.Option(help="Column of --file with the texts; else guessed.")] = None,
    skip_bad_rows: SkipBadRows = False,
    target: Annotated[str | None, typer.Option(help="Label to speak for; by default the one decided on.")] = None,
    contrast: Annotated[str | None, typer.Option(help="Label to speak against; by default the mean of all.")] = None,
    method: Method = "dla",
    top: Top = 8,
    abstain: Abstain = None,
    windows: Annotated[bool, typer.Option(help="Read long texts whole, in windows with a decision each.")] = False,
    all_tokens: AllTokens = False,
    merge_inflections: MergeInflections = False,
    as_json: AsJson = False,
    html: Annotated[Path | None, typer.Option(help="Write a page to look at instead of printing.")] = None,
) -> None:
    """Show the label of each text, the words that speak most for and against it, and how they sum to the decision.

    Example: lexical-sae explain results/quickstart/model "a warm and funny film"

    Bold green words of the text speak for the label, underlined red ones against it. "read from" is the word of the
    text behind a word that the model read in. "without it" is how the sum changes when the word is removed, exactly;
    a star says that this is over a tenth more or less than the word says, and a label that the decision would change
    to it. Tokens that are no whole words share one row and are part of the sum; --all-tokens names them.

    For a model with literal words, "default" is what the table says of the word in any text, and "context" what this
    text makes of it: stronger, weaker or reversed, and by which word. That word is measured, by masking every other
    word once; it is not proved.

    A file, as JSON lines: lexical-sae explain MODEL --file reviews.csv --json > why.jsonl

    A file, as a page: lexical-sae explain MODEL --file reviews.csv --html why.html

    A text that begins with a dash goes after two dashes: lexical-sae explain MODEL -- "-- what a film"
    """
    if html is not None and (windows or as_json):
        raise ValueError("--html writes one page of whole texts; leave out --windows and --json")
    if html is not None:
        require_writable_target(html, reads=[file] if file else [], option="--html")
    given = _texts(texts, file, text_column, skip_bad_rows=skip_bad_rows)
    show = _show_json if as_json else _panel_with(top)
    loaded = _loaded(model)
    if loaded.calibration is None:
        tell_beside([NOT_CALIBRATED])
    from splade import inference

    asked = {"target": target, "contrast": contrast, "method": method, "causes": True, "abstain": abstain}
    asked |= {"all_tokens": all_tokens, "merge_inflections": merge_inflections}
    if html is not None:
        found = _watched(inference.explain_stream(loaded, given, **asked), len(given))
        typer.echo(f"written to {write_explanations(found, html, str(file or 'the command line'))}")
    elif windows:
        parts = (inference.explain_windows(loaded, text, **asked) for text in given)
        for explained in _watched(parts, len(given)):
            for window in explained:
                _show_window(window, show, as_json=as_json)
    else:
        for explanation in _watched(inference.explain_stream(loaded, given, **asked), len(given)):
            show(explanation)


def why_not(
    model: Model,
    text: Text,
    label: Annotated[str, typer.Argument(help="The label that the text did not get.")],
    method: Method = "dla",
    top: Top = 8,
    all_tokens: AllTokens = False,
    merge_inflections: MergeInflections = False,
    as_json: AsJson = False,
) -> None:
    """Show which words speak for the label that a text got, and not for another.

    Example: lexical-sae why-not results/quickstart/model "a warm but slow film" negative
    """
    loaded = _loaded(model)
    from splade import inference

    shown = {"all_tokens": all_tokens, "merge_inflections": merge_inflections}
    explanation = inference.explain(loaded, text, contrast=label, method=method, causes=True, **shown)
    if explanation.label == label:
        others = ", ".join(repr(name) for name, _ in explanation.probabilities if name != label)
        raise ValueError(f"this text does get the label {label!r}; ask why not {others}")
    (_show_json if as_json else _panel_with(top))(explanation)


def flip(
    model: Model,
    text: Text,
    to: Annotated[str | None, typer.Option(help="The label to change to; by default any other.")] = None,
    seconds: Annotated[float, typer.Option(help="Time for each of the two searches.", min=0.1)] = 10.0,
    all_tokens: AllTokens = False,
    merge_inflections: MergeInflections = False,
    as_json: AsJson = False,
) -> None:
    """Find the fewest words whose removal changes the decision, and the fewest that are enough for it, with proof.

    Example: lexical-sae flip results/quickstart/model "a warm and funny film"

    Words are the active words of the model, as `explain` shows them. When time runs out, the smallest set found is
    shown together with the number of words below which none will do.
    """
    from splade.report.reasons_terminal import reasons_panel

    loaded = _loaded(model)
    from splade import inference

    with Console(stderr=True).status("looking for the fewest words"):
        # Only the clock stops the search: the number of sets is no limit that a person would set.
        shown = {"all_tokens": all_tokens, "merge_inflections": merge_inflections}
        found = inference.find_reasons(loaded, text, to, max_nodes=10**9, seconds=seconds, **shown)
    if as_json:
        typer.echo(json.dumps(found.as_dict()))
    else:
        console.print(reasons_panel(found))


def _loaded(folder: Path) -> "LexicalSAE":
    with Console(stderr=True).status("loading the model"):
        from splade.models.persistence import from_pretrained

        return from_pretrained(folder)


def _texts(texts: list[str] | None, file: Path | None, text_column: str | None, *, skip_bad_rows: bool) -> list[str]:
    if bool(texts) == (file is not None):
        raise ValueError("give either texts, each in quotes, or --file with a table of texts")
    if file is None:
        if text_column is not None:
            raise ValueError(f"--text-column {text_column!r} names a column of --file, and there is none")
        return texts or []
    found, notes = read_texts(file, text_column, skip_bad_rows=skip_bad_rows)
    tell_beside(notes)
    return found


def _watched(found: Iterator[Found], total: int) -> Iterator[Found]:
    """The same, with a bar on standard error after two seconds, where what is printed does not show on the screen."""
    if console.is_terminal:
        yield from found
        return
    from splade.progress import Step
    from splade.report.progress import ProgressBars

    start, bars = time.monotonic(), None
    with ExitStack() as shown:
        for done, each in enumerate(found, start=1):
            if bars is None and time.monotonic() - start > PATIENCE:
                bars = shown.enter_context(ProgressBars(Console(stderr=True)))
            if bars is not None:
                bars(Step("explaining", done, total))
            yield each


Show = Callable[["ShownExplanation"], None]


def _panel_with(top: int) -> Show:
    def show(explanation: "ShownExplanation") -> None:
        from splade.report.explanation_terminal import explanation_panel

        console.print(explanation_panel(explanation, top))

    return show


def _show_json(explanation: "ShownExplanation") -> None:
    typer.echo(explanation.to_json())


def _show_window(window: "Window", show: Show, *, as_json: bool) -> None:
    """A window with its place in the text; its explanation is of that part alone."""
    if as_json:
        place = {"start": window.start, "end": window.end}
        typer.echo(json.dumps({**place, "explanation": json.loads(window.explanation.to_json())}))
    else:
        console.print(f"characters {window.start} to {window.end}, decided by themselves:", style="dim")
        show(window.explanation)
