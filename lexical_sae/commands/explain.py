"""Why a model decides as it does: the commands `explain`, `why-not` and `flip`."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.console import Console

from lexical_sae.commands.console import console
from lexical_sae.commands.options import (
    METHODS,
    AllTokens,
    MergeInflections,
    Model,
    SkipBadRows,
    load_model,
    print_notes,
    require_choice,
    require_file,
    saved_model,
)
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.files import require_writable_target

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from lexical_sae.inference import Window
    from lexical_sae.report.explanation.shown import ShownExplanation

NOT_CALIBRATED = (
    "this model was saved without a calibration: there are no warnings about off-topic texts; add one from its run's "
    "data with `lexical-sae calibrate MODEL`"
)
PATIENCE = 2.0
"""Seconds after which a bar appears."""

Text = Annotated[str, typer.Argument(help="A text in quotes.")]
Top = Annotated[int, typer.Option(help="How many words to show.", min=1)]
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object per line instead of a table.")]
Method = Annotated[
    str,
    typer.Option(
        help="dla: the contribution of each word; path: the same along the path from the empty text; "
        "leave_one_out: the effect of removing each word."
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
    file: Annotated[
        Path | None, typer.Option(help="Explain the texts of a data file (CSV, JSON, Excel, …; .txt: one per line).")
    ] = None,
    text_column: Annotated[str | None, typer.Option(help="Column of --file with the texts; else inferred.")] = None,
    skip_bad_rows: SkipBadRows = False,
    target: Annotated[str | None, typer.Option(help="Label to explain; by default the predicted one.")] = None,
    contrast: Annotated[str | None, typer.Option(help="Label to compare with; by default the mean of all.")] = None,
    method: Method = "dla",
    top: Top = 8,
    abstain: Abstain = None,
    windows: Annotated[bool, typer.Option(help="Explain long texts in windows, with a decision each.")] = False,
    all_tokens: AllTokens = False,
    merge_inflections: MergeInflections = False,
    as_json: JsonLines = False,
    html: Annotated[Path | None, typer.Option(help="Write a page to look at instead of printing.")] = None,
) -> None:
    """Show the label of each text, the words with the highest contributions, and how they sum to the decision.

    Example: lexical-sae explain results/quickstart "a warm and funny film"

    Bold green words contribute to the label, underlined red ones against it. "activated by" is the word of the text
    that activates a feature. "if removed" is the exact effect of removing the word; a star marks one that differs
    from the contribution by more than 10 %, and a label there is the one the decision would change to. Word pieces
    and symbols share one row and are part of the sum; --all-tokens names them.

    For a model with literal words, "default" is the word's weight in any text, and "context" how this text changes
    it: stronger, weaker or reversed, and by which word. That word is found by masking every other word once; this is
    a measurement, not a proof.

    A model of any number of labels gets a table per label that is decided for; --target asks for one. Of a model that
    predicts a number, contributions and bias sum to the number.

    A file, as JSON lines: lexical-sae explain MODEL --file reviews.csv --json > why.jsonl

    A file, as a page: lexical-sae explain MODEL --file reviews.csv --html why.html

    A text that begins with a dash goes after two dashes: lexical-sae explain MODEL -- "-- what a film"
    """
    if html is not None and (windows or as_json):
        raise SettingsError("--html writes one page of whole texts; leave out --windows and --json")
    if html is not None:
        require_writable_target(html, reads=[file] if file else [], option="--html")
    require_file(file)
    saved_model(model)
    given = _texts(texts, file, text_column, skip_bad_rows=skip_bad_rows)
    require_choice("--method", method, METHODS)
    show = _show_json if as_json else _panel_with(top)
    loaded = load_model(model)
    if loaded.calibration is None:
        print_notes([NOT_CALIBRATED])
    from lexical_sae import inference

    asked = {"contrast": contrast, "method": method, "causes": True, "abstain": abstain}
    asked |= {"all_tokens": all_tokens, "merge_inflections": merge_inflections}
    stream = inference.explain_decided
    if target is not None or windows:
        asked["target"], stream = target, inference.explain_stream
    if html is not None:
        from lexical_sae.runs.pages.report import SHOWN_AT_MOST, write_explanations

        kept = given[:SHOWN_AT_MOST]
        found = _watched(stream(loaded, kept, **asked), len(kept))
        page = write_explanations(found, html, str(file or "the command line"), left_out=len(given) - len(kept))
        typer.echo(f"written to {page}")
    elif windows:
        parts = (inference.explain_windows(loaded, text, **asked) for text in given)
        for explained in _watched(parts, len(given)):
            for window in explained:
                _show_window(window, show, as_json=as_json)
    else:
        for explanation in _watched(stream(loaded, given, **asked), len(given)):
            show(explanation)


def why_not(
    model: Model,
    text: Text,
    label: Annotated[str, typer.Argument(help="A label that the text did not get.")],
    method: Method = "dla",
    top: Top = 8,
    all_tokens: AllTokens = False,
    merge_inflections: MergeInflections = False,
    as_json: JsonLines = False,
) -> None:
    """Show the words behind the label that a text got, rather than another.

    Example: lexical-sae why-not results/quickstart "a warm and funny film" negative
    """
    loaded = load_model(model)
    from lexical_sae import inference

    shown = {"all_tokens": all_tokens, "merge_inflections": merge_inflections}
    explanation = inference.explain(loaded, text, contrast=label, method=method, causes=True, **shown)
    if explanation.label == label:
        others = ", ".join(repr(name) for name, _ in explanation.probabilities if name != label)
        raise SettingsError(f"this text does get the label {label!r}; ask about another: {others}")
    (_show_json if as_json else _panel_with(top))(explanation)


def flip(
    model: Model,
    text: Text,
    to: Annotated[str | None, typer.Option(help="The label to change to; by default any other.")] = None,
    seconds: Annotated[float, typer.Option(help="Time for each of the two searches.", min=0.1)] = 10.0,
    all_tokens: AllTokens = False,
    merge_inflections: MergeInflections = False,
    as_json: JsonLines = False,
) -> None:
    """Find the fewest words whose removal changes the decision, and the fewest that are enough for it, with proof.

    Example: lexical-sae flip results/quickstart "a warm and funny film"

    Words are the active words of the model, as `explain` shows them. When time runs out, the smallest set found is
    shown together with the number of words below which none will do.
    """
    from lexical_sae.report.explanation.reasons import reasons_panel

    loaded = load_model(model)
    from lexical_sae import inference

    with Console(stderr=True).status("looking for the fewest words"):
        # Only the clock stops the search: the number of sets is no limit that a person would set.
        shown = {"all_tokens": all_tokens, "merge_inflections": merge_inflections}
        found = inference.find_reasons(loaded, text, to, max_nodes=10**9, seconds=seconds, **shown)
    if as_json:
        typer.echo(json.dumps(found.as_dict()))
    else:
        console.print(reasons_panel(found))


def _texts(texts: list[str] | None, file: Path | None, text_column: str | None, *, skip_bad_rows: bool) -> list[str]:
    if bool(texts) == (file is not None):
        raise SettingsError("give either texts, each in quotes, or --file with a table of texts")
    if file is None:
        if text_column is not None:
            raise SettingsError(f"--text-column {text_column!r} names a column of --file, and there is none")
        return texts or []
    from lexical_sae.runs.texts import read_texts

    found, notes = read_texts(file, text_column, skip_bad_rows=skip_bad_rows)
    print_notes(notes)
    return found


def _watched(found: Iterator[Found], total: int) -> Iterator[Found]:
    """The same, with a bar on standard error after two seconds, where what is printed does not show on the screen."""
    if console.is_terminal:
        yield from found
        return
    from lexical_sae.report.progress import ProgressBars
    from lexical_sae.utils.progress import Step

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
        from lexical_sae.report.explanation.terminal import explanation_panel

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
