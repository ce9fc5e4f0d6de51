"""Pages to look at: of a run (`lexical-sae report`), and of a batch of explanations (`lexical-sae explain --html`)."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from splade.scripts.console import AllTokens, console, run_command

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from splade.data import TextSplit
    from splade.evaluation.table_words import TableWordCollector
    from splade.explanation import Explanation
    from splade.models.lexical_sae import LexicalSAE
    from splade.progress import OnStep
    from splade.report.page import Example, Lead, Page
    from splade.scripts.report_files import RunFiles

GOLDEN = 0.6180339887498949
"""Steps of this share of the whole never crowd anywhere."""
READ_AT_MOST = 2000
"""Test texts behind the words of each class."""
LOOKED_AT = 200
"""Test texts among which examples are looked for."""
LEAD_TEXTS = 3
"""Coloured texts at the beginning of a report, where words may shift."""
FEWEST_WORDS, MOST_WORDS = 3, 24
"""Words of each class at the beginning, and of all classes together unless these would be too few for one."""
SHOWN_AT_MOST = 500
"""Explanations on one page: a browser takes no more with ease."""


def report(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    out: Annotated[Path | None, typer.Option(help="File to write; by default report.html in the folder.")] = None,
    texts: Annotated[int, typer.Option(help="Test texts to explain, half of them wrong decisions.", min=0)] = 8,
    all_tokens: AllTokens = False,
) -> None:
    """Write a run's report as one HTML file: figures, curves, words of each class, texts explained, settings.

    Example: lexical-sae report results/quickstart

    The file needs nothing else, runs no script, and can be sent or printed. What is missing is said at its end.
    A tagger's has sentences with their entities in colour, and the words behind each.
    """
    from splade.report.printable import shown
    from splade.report.progress import ProgressBars

    with ProgressBars(Console(stderr=True)) as bars:
        written, missing = write_report(run, out, texts, bars, all_tokens=all_tokens)
    for line in missing:
        console.print(Text(shown(line), style="dim"))
    console.print(Text(shown(f"written to {written}"), style="dim"), soft_wrap=True)


def write_report(
    run: Path,
    out: Path | None = None,
    texts: int = 8,
    on_step: "OnStep | None" = None,
    *,
    all_tokens: bool = False,
) -> tuple[Path, "Sequence[str]"]:
    """Write a run's page, by default into its folder; where it is, and what it could not show, in sentences."""
    from splade.files import require_writable_target, write_text
    from splade.progress import silent
    from splade.report.page import page_html
    from splade.scripts.ner_report import is_tagging_run, write_tagging_report
    from splade.training.run_folder import CONFIG, ENVIRONMENT, HISTORY, MEASURED, REPORT, RESULTS

    if out is not None:
        require_writable_target(out, reads=[run / name for name in (CONFIG, ENVIRONMENT, HISTORY, RESULTS, *MEASURED)])
    if is_tagging_run(run):
        return write_tagging_report(run, out, texts, on_step or silent, all_tokens=all_tokens)
    place = out or run / REPORT
    page = run_page(run, place, texts, on_step or silent, all_tokens=all_tokens)
    return write_text(place, page_html(page)), page.missing


def write_explanations(explanations: Iterable["Explanation"], out: Path, source: str) -> Path:
    """Write a page of explanations; `source` says where the texts come from. The first 500 are shown.

    Example: `write_explanations(explain_stream(model, texts), Path("why.html"), "reviews.csv")`
    """
    from splade.files import write_text
    from splade.report.page import Example, Page, page_html

    shown, more = [], 0
    for explanation in explanations:
        if len(shown) < SHOWN_AT_MOST:
            shown.append(Example(explanation))
        else:
            more += 1
    left_out = [f"{more} more texts were explained; --json writes them all."] if more else []
    title = f"{len(shown)} explanation{'s' if len(shown) != 1 else ''}"
    return write_text(out, page_html(Page(title, source, examples=shown, missing=left_out)))


def run_page(folder: Path, place: Path, texts: int, on_step: "OnStep", *, all_tokens: bool = False) -> "Page":
    """What there is to show of a run on a page at `place`. A folder without settings is no run, and refused."""
    from splade.report.page import Page
    from splade.scripts.report_files import RunFiles

    if not (folder / "resolved_config.yaml").is_file():
        within = sorted(path.parent.name for path in folder.glob("*/resolved_config.yaml"))
        remedy = f"its runs are in {', '.join(within)}" if within else "give the output_dir of an experiment"
        raise ValueError(f"{folder} holds no run: it has no resolved_config.yaml; {remedy}")
    files = RunFiles(folder)
    if files.are_several():
        raise ValueError(
            f"{folder} holds several experiments; give the folder of one of them. Their page is report.html"
        )
    results = files.results()
    return Page(
        title=f"Report of {folder.resolve().name}",
        subtitle=" ".join(filter(None, (files.about(), _several_seeds(files)))),
        headline=results[0] if results else None,
        figures=(*results[1:], *files.names(), *files.baselines()),
        evaluation=files.evaluation(),
        curves=files.curves(),
        **_read_by_model(files, texts, on_step, all_tokens=all_tokens),
        frontier=files.frontier(),
        explainers=files.explainers(),
        studies=files.studies(place),
        documents=files.documents(),
        missing=files.missing,
    )


def _several_seeds(files: "RunFiles") -> str:
    is_one_of_many = files.own != files.folder
    return (
        f"Evaluation, names, curves, words and texts are those of {files.own.name}, the first of several."
        if is_one_of_many
        else ""
    )


def _read_by_model(files: "RunFiles", texts: int, on_step: "OnStep", *, all_tokens: bool) -> dict[str, Any]:
    """The words of each class and some texts explained; nothing where the model or its data cannot be had."""
    from splade.config.load import load_config
    from splade.evaluation.survey import survey
    from splade.evaluation.table_words import TableWordCollector
    from splade.models.persistence import from_pretrained
    from splade.pipelines import load_data, require_same_labels, require_same_rows

    place = files.own / "model"
    if not place.is_dir():
        files.missing.append("There is no model in the folder, so no words and no texts: training saves it at its end.")
        return {}
    try:
        config, seed = load_config(files.folder / "resolved_config.yaml"), files.seed()
        dataset = load_data(config, config.evaluation.seeds[0] if seed is None else seed)
        model = from_pretrained(place)
        require_same_labels(model, dataset)
        require_same_rows(files.own, dataset)
    except (ValueError, OSError, RuntimeError) as error:
        files.missing.append(f"There are no words and no texts, as the model or its data cannot be had: {error}")
        return {}
    corpus = dataset.test.take(spread_rows(len(dataset.test), READ_AT_MOST))
    if len(corpus) < len(dataset.test):
        files.missing.append(f"The words of each class are those of {len(corpus)} of {len(dataset.test)} test texts.")
    table = TableWordCollector(model) if model.literal is not None else None
    shown = {"all_tokens": all_tokens, "on_step": on_step}
    found = survey(model, corpus.texts, list(corpus.labels), beside=[table] if table else [], **shown)
    examples = _examples(model, corpus, choose_rows, texts, all_tokens=all_tokens)
    lead = _lead(files, model, corpus, table) if table else None
    return {"lead": lead, "lexicon": found.as_dict()["lexicon"], "examples": examples}


def _lead(files: "RunFiles", model: "LexicalSAE", corpus: "TextSplit", table: "TableWordCollector") -> "Lead":
    """What the page of a model with literal words begins with."""
    from splade.report.page import Lead

    words = table.words(max(FEWEST_WORDS, MOST_WORDS // len(table.labels)))
    examples = _examples(model, corpus, partial(_shifted_first, model, corpus), LEAD_TEXTS)
    return Lead(words.classes, words.from_data_alone, files.accuracies(), examples)


def _shifted_first(model: "LexicalSAE", corpus: "TextSplit", are_wrong: "Sequence[bool]", wanted: int) -> list[int]:
    """Rows of right decisions, those with a reversed word first, then those with another shift."""
    from splade.inference import explain
    from splade.report.shifts import shift_of

    right = [row for row, is_wrong in enumerate(are_wrong) if not is_wrong]
    explained = explain(model, [corpus.texts[row] for row in right], effects=False, places=False)
    shifts = [[shift for word in why.words if (shift := shift_of(word))] for why in explained]
    order = sorted(range(len(right)), key=lambda i: (not any(s.is_reversed for s in shifts[i]), not shifts[i], i))
    return [right[i] for i in order[:wanted]]


Chooser = Callable[["Sequence[bool]", int], list[int]]
"""Which rows to show, given which decisions are wrong and how many are wanted."""


def _examples(
    model: "LexicalSAE", corpus: "TextSplit", choose: Chooser, wanted: int, *, all_tokens: bool = False
) -> "list[Example]":
    from splade.inference import explain, predict
    from splade.inference.labels import labels_of
    from splade.report.page import Example

    names, looked_at = labels_of(model), corpus.take(range(min(LOOKED_AT, len(corpus))))
    labelled = [names[label] for label in looked_at.labels]
    # Labels first: an explanation takes far longer, and few are shown.
    are_wrong = [label != true for label, true in zip(predict(model, looked_at.texts), labelled, strict=True)]
    rows = choose(are_wrong, wanted)
    explained = explain(model, [looked_at.texts[row] for row in rows], all_tokens=all_tokens, causes=True)
    return [Example(why, labelled[row]) for why, row in zip(explained, rows, strict=True)]


def spread_rows(count: int, most: int) -> list[int]:
    """Up to `most` of `count` rows in an order whose every beginning covers all parts of a file about evenly.

    Example: `spread_rows(8, 4) -> [0, 5, 2, 7]`
    """
    return sorted(range(count), key=lambda row: row * GOLDEN % 1)[:most]


def choose_rows(are_wrong: "Sequence[bool]", wanted: int) -> list[int]:
    """Rows of the first right decisions and then of the first wrong ones, half and half where there are enough.

    Example: `choose_rows([True, False, False, True], 2) -> [1, 0]`
    """
    right = [row for row, is_wrong in enumerate(are_wrong) if not is_wrong]
    wrong = [row for row, is_wrong in enumerate(are_wrong) if is_wrong]
    num_wrong = min(len(wrong), max(wanted // 2, wanted - len(right)))
    return [*right[: wanted - num_wrong], *wrong[:num_wrong]]


if __name__ == "__main__":
    run_command(report)
