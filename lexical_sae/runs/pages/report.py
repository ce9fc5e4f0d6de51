"""Pages to look at: of a run, and of a batch of explanations."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lexical_sae.data import TextSplit
from lexical_sae.evaluation.collect import collect, opened_to_corpus
from lexical_sae.evaluation.corpus.survey import survey
from lexical_sae.evaluation.corpus.table_words import TableWordCollector
from lexical_sae.evaluation.metrics.performance import PerformanceCollector
from lexical_sae.explanation import Explanation
from lexical_sae.inference import explain, predict
from lexical_sae.inference.labels import labels_of, names_of
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.outputs import CLASSES, Classes
from lexical_sae.report.explanation.shifts import shift_of
from lexical_sae.report.page import Confusion, Example, Lead, Page, page_html
from lexical_sae.runs.folder import CONFIG, ENVIRONMENT, HISTORY, MEASURED, REPORT, RESULTS
from lexical_sae.runs.pages.report_parts import ReportParts
from lexical_sae.runs.run import Run
from lexical_sae.utils.errors import SavedFileError
from lexical_sae.utils.files import require_writable_target, write_text
from lexical_sae.utils.progress import OnStep, silent

EXAMPLES = 8
"""Test texts that are explained."""
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


def write_report(
    run: Run, out: Path | None = None, texts: int | None = None, on_step: OnStep = silent, *, all_tokens: bool = False
) -> tuple[Path, Sequence[str]]:
    """Write a run's page, by default into its folder; where it is, and what it could not show, in sentences."""
    if out is not None:
        reads = [run.folder / name for name in (CONFIG, ENVIRONMENT, HISTORY, RESULTS, *MEASURED)]
        require_writable_target(out, reads=reads)
    wanted = EXAMPLES if texts is None else texts
    if _is_tagger(run):
        from lexical_sae.runs.tagging.pages import write_tagging_report

        return write_tagging_report(run, out, wanted, on_step, all_tokens=all_tokens)
    place = out or run.folder / REPORT
    page = run_page(run, place, wanted, on_step, all_tokens=all_tokens)
    return write_text(place, page_html(page)), page.missing


def _is_tagger(run: Run) -> bool:
    try:
        return run.is_tagger
    except (ValueError, OSError, TypeError):
        return False


def write_explanations(explanations: Iterable[Explanation], out: Path, source: str, left_out: int = 0) -> Path:
    """Write a page of explanations; `source` says where the texts come from. The first 500 are shown.

    `left_out` is how many more texts there are that were not explained.

    Example: `write_explanations(explain_stream(model, texts), Path("why.html"), "reviews.csv")`
    """
    shown, more = [], left_out
    for explanation in explanations:
        if len(shown) < SHOWN_AT_MOST:
            shown.append(Example(explanation))
        else:
            more += 1
    notes = [f"{more} more texts are not shown; --json writes them all."] if more else []
    title = f"{len(shown)} explanation{'s' if len(shown) != 1 else ''}"
    return write_text(out, page_html(Page(title, source, examples=shown, missing=notes)))


def run_page(run: Run, place: Path, texts: int, on_step: OnStep, *, all_tokens: bool = False) -> Page:
    """What there is to show of a run on a page at `place`."""
    parts = ReportParts(run)
    if parts.are_several():
        raise SavedFileError(
            f"{run.folder} holds several experiments; give the folder of one of them. Their page is report.html"
        )
    results = parts.results()
    return Page(
        title=f"Report of {run.folder.resolve().name}",
        subtitle=" ".join(filter(None, (parts.about(), _several_seeds(run)))),
        explorer=parts.explorer(place),
        headline=results[0] if results else None,
        figures=(*results[1:], *parts.names(), *parts.baselines()),
        evaluation=parts.evaluation(),
        curves=parts.curves(),
        **_read_by_model(parts, texts, on_step, all_tokens=all_tokens),
        frontier=parts.frontier(),
        explainers=parts.explainers(),
        studies=parts.studies(place),
        documents=parts.documents(),
        missing=parts.missing,
    )


def _several_seeds(run: Run) -> str:
    if run.first is run:
        return ""
    return f"Evaluation, names, curves, words and texts are those of {run.first.folder.name}, the first of several."


def _read_by_model(parts: ReportParts, texts: int, on_step: OnStep, *, all_tokens: bool) -> dict[str, Any]:
    """The words of each class and some texts explained; nothing where the model or its data cannot be had."""
    if not parts.run.first.has_model:
        parts.missing.append("There is no model in the folder, so no words and no texts: training saves it at its end.")
        return {}
    try:
        model, dataset = parts.run.first.model_and_data()
    except (ValueError, OSError, RuntimeError) as error:
        parts.missing.append(f"There are no words and no texts, as the model or its data cannot be had: {error}")
        return {}
    corpus = dataset.test.take(spread_rows(len(dataset.test), READ_AT_MOST))
    if len(corpus) < len(dataset.test):
        parts.missing.append(f"The words of each class are those of {len(corpus)} of {len(dataset.test)} test texts.")
    table = TableWordCollector(model) if model.literal is not None else None
    if not isinstance(model.output, Classes):
        parts.missing.append(f"Words by label in the test texts are not counted: that is for {CLASSES.title}.")
        opened, read = opened_to_corpus(model, corpus.texts)
        collect(opened, read, [table] if table else [], corpus.labels, on_step=on_step)
        lead = _lead(parts, model, corpus, table, None) if table else None
        return {"lead": lead, "examples": _examples(model, corpus, choose_rows, texts, all_tokens=all_tokens)}
    decisions = PerformanceCollector(labels_of(model), model.max_length)
    shown = {"all_tokens": all_tokens, "on_step": on_step}
    found = survey(model, corpus.texts, list(corpus.labels), beside=[decisions, *([table] if table else [])], **shown)
    examples = _examples(model, corpus, choose_rows, texts, all_tokens=all_tokens)
    confusion = Confusion(labels_of(model), decisions.confusion.tolist())
    lead = _lead(parts, model, corpus, table, confusion) if table else None
    return {"lead": lead, "lexicon": found.as_dict()["lexicon"], "examples": examples}


def _lead(
    parts: ReportParts, model: LexicalSAE, corpus: TextSplit, table: TableWordCollector, confusion: Confusion | None
) -> Lead:
    """What the page of a model with literal words begins with."""
    words = table.words(max(FEWEST_WORDS, MOST_WORDS // len(table.sides)))
    examples = _examples(model, corpus, partial(_shifted_first, model, corpus), LEAD_TEXTS)
    return Lead(words.classes, words.from_data_alone, parts.accuracies(), examples, confusion)


def _shifted_first(model: LexicalSAE, corpus: TextSplit, are_wrong: Sequence[bool], wanted: int) -> list[int]:
    """Rows of right decisions, those with a reversed word first, then those with another shift."""
    right = [row for row, is_wrong in enumerate(are_wrong) if not is_wrong]
    explained = explain(model, [corpus.texts[row] for row in right], effects=False, places=False)
    shifts = [[shift for word in why.words if (shift := shift_of(word))] for why in explained]
    order = sorted(range(len(right)), key=lambda i: (not any(s.is_reversed for s in shifts[i]), not shifts[i], i))
    return [right[i] for i in order[:wanted]]


Chooser = Callable[[Sequence[bool], int], list[int]]
"""Which rows to show, given which decisions are wrong and how many are wanted."""


def _examples(
    model: LexicalSAE, corpus: TextSplit, choose: Chooser, wanted: int, *, all_tokens: bool = False
) -> list[Example]:
    output, looked_at = model.output, corpus.take(range(min(LOOKED_AT, len(corpus))))
    labelled = output.labelled(looked_at.labels, names_of(model))
    # Labels first: an explanation takes far longer, and few are shown.
    decided = [output.written(made) for made in predict(model, looked_at.texts)]
    are_wrong = [output.is_choice and label != true for label, true in zip(decided, labelled, strict=True)]
    rows = choose(are_wrong, wanted)
    explained = explain(model, [looked_at.texts[row] for row in rows], all_tokens=all_tokens, causes=True)
    return [Example(why, labelled[row]) for why, row in zip(explained, rows, strict=True)]


def spread_rows(count: int, most: int) -> list[int]:
    """Up to `most` of `count` rows in an order whose every beginning covers all parts of a file about evenly.

    Example: `spread_rows(8, 4) -> [0, 5, 2, 7]`
    """
    return sorted(range(count), key=lambda row: row * GOLDEN % 1)[:most]


def choose_rows(are_wrong: Sequence[bool], wanted: int) -> list[int]:
    """Rows of the first right decisions and then of the first wrong ones, half and half where there are enough.

    Example: `choose_rows([True, False, False, True], 2) -> [1, 0]`
    """
    right = [row for row, is_wrong in enumerate(are_wrong) if not is_wrong]
    wrong = [row for row, is_wrong in enumerate(are_wrong) if is_wrong]
    num_wrong = min(len(wrong), max(wanted // 2, wanted - len(right)))
    return [*right[: wanted - num_wrong], *wrong[:num_wrong]]
