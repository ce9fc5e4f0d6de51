"""How well a model decides: rows, tables and charts of an evaluation's first topic."""

from collections.abc import Sequence
from dataclasses import asdict

from lexical_sae.evaluation.metrics.calibration import CALIBRATION, CalibrationResult
from lexical_sae.evaluation.metrics.completeness import COMPLETENESS, CompletenessResult
from lexical_sae.evaluation.metrics.context_use import CONTEXT_USE, ContextUse
from lexical_sae.evaluation.metrics.performance import PERFORMANCE, Performance
from lexical_sae.evaluation.metrics.selective import SELECTIVE, SelectiveResult
from lexical_sae.evaluation.metrics.task import TASK, TaskResult
from lexical_sae.evaluation.metrics.word_budget import WORD_BUDGET, FrontierPoint
from lexical_sae.evaluation.results import EvaluationResults
from lexical_sae.evaluation.views.charts import chart, level, line
from lexical_sae.evaluation.views.reliability import TITLE as RELIABILITY
from lexical_sae.evaluation.views.reliability import reliability_sentence, reliability_svg
from lexical_sae.evaluation.views.rows import Rows, word_count
from lexical_sae.report.charts.svg import Axis, Picture
from lexical_sae.report.interval_text import NOT_MEASURED, number_text, share_text
from lexical_sae.report.tables import FIGURE, FigureTable
from lexical_sae.report.task import label_tables, task_rows


def decision_rows(found: EvaluationResults) -> Rows:
    """Accuracy, active words, calibration and coverage."""
    return [
        *found.views(TASK, _task_rows),
        *found.views(PERFORMANCE, _accuracy_rows),
        *found.views(CONTEXT_USE, _context_rows),
        *found.views(PERFORMANCE, _word_rows),
        *found.views(CALIBRATION, _calibration_rows),
        *found.views(PERFORMANCE, _text_rows),
        *found.views(SELECTIVE, selective_rows),
    ]


def decision_tables(found: EvaluationResults) -> list[FigureTable]:
    """Classes, calibration, coverage, and accuracy by the number of words."""
    return [
        *found.views(TASK, lambda task: label_tables([asdict(row) for row in task.per_label])),
        *found.views(PERFORMANCE, _class_tables),
        *found.views(COMPLETENESS, _predicted_class_tables),
        *found.views(CALIBRATION, _calibration_tables),
        *found.views(SELECTIVE, _coverage_tables),
        *found.views(WORD_BUDGET, _word_budget_tables),
    ]


def decision_charts(found: EvaluationResults) -> list[Picture]:
    """Reliability, and accuracy with fewer words."""
    scores = found.get(PERFORMANCE)
    return [
        *found.views(CALIBRATION, _reliability),
        *(found.views(WORD_BUDGET, lambda points: _fewer_words(points, scores)) if scores else ()),
    ]


def _task_rows(task: TaskResult) -> Rows:
    rows = task_rows([asdict(figure) for figure in task.figures])
    words = ("active words", number_text(task.active_words, 1), "per text")
    identity = ("identity error", f"{task.worst_identity_error:.0e}", "worst of all texts")
    return [*rows, words, identity]


def _accuracy_rows(scores: Performance) -> Rows:
    return [("accuracy", share_text(scores.accuracy), f"always predicting the commonest label: {scores.majority:.1%}")]


def _context_rows(context: ContextUse) -> Rows:
    without = f"words per text not at their default; none in {share_text(context.texts_without)} of texts"
    return [
        ("context-free accuracy", share_text(context.context_free), "every word at its default: the table alone"),
        ("context shifts", number_text(context.shifts, 1), without),
    ]


def _word_rows(scores: Performance) -> Rows:
    return [("active words", number_text(scores.active_words, 0), "per text")]


def _before_temperature(calibration: CalibrationResult) -> str:
    """The calibration error without the fitted temperature; nothing where none was fitted."""
    if calibration.ece_before is None or calibration.temperature == 1:
        return ""
    return f"; {calibration.ece_before.mean:.1%} before logits were divided by {calibration.temperature:.2f}"


def _calibration_rows(calibration: CalibrationResult) -> Rows:
    chance = f"up to {calibration.ece_by_chance_high:.1%} is chance"
    return [
        (
            "calibration error",
            share_text(calibration.ece),
            f"gap between confidence and accuracy; {chance}{_before_temperature(calibration)}",
        ),
        ("overconfidence", share_text(calibration.overconfidence), "mean confidence minus accuracy"),
    ]


def _text_rows(scores: Performance) -> Rows:
    rows: Rows = []
    if scores.texts_without_words:
        rows.append(("no words", str(scores.texts_without_words), "texts; the bias alone decides"))
    if scores.texts_at_limit:
        rows.append(("truncated texts", f"at most {scores.texts_at_limit}", "fill all the tokens the model reads"))
    return rows


def selective_rows(selective: SelectiveResult) -> Rows:
    """Accuracy by coverage, and how many texts get a warning."""
    rows: Rows = [
        (
            f"most confident {point.coverage:.0%}",
            f"{point.accuracy:.1%}",
            f"accuracy of the {point.texts} texts with a confidence of {point.least_confidence:.0%} or more",
        )
        for point in selective.points
        if point.coverage < 1
    ]
    kinds = ", ".join(f"{kind} {share:.1%}" for kind, share in selective.warnings.items())
    missing = "" if selective.is_calibrated else "the model has no calibration, so most kinds are missing"
    return [
        *rows,
        ("AURC", f"{selective.aurc:.3f}", f"area under risk–coverage; {selective.error:.3f} is chance"),
        ("texts with a warning", f"{selective.warned:.1%}", "; ".join(filter(None, (kinds, missing)))),
    ]


def _class_tables(scores: Performance) -> list[FigureTable]:
    rows = [
        (own.label, str(own.texts), *(_share(value) for value in (own.precision, own.recall, own.f1)))
        for own in scores.classes
    ]
    note = f"Mean F1 of the classes that occur: {_share(scores.macro_f1)}."
    return [FigureTable("Each class", ("class", "texts", "precision", "recall", "F1"), rows, note)]


def _predicted_class_tables(completeness: CompletenessResult) -> list[FigureTable]:
    sizes = completeness.sizes
    predicted = list(dict.fromkeys(label for size in sizes for label in size.per_class))
    return [
        FigureTable(
            "Each predicted class: labels that stay, from its strongest words alone",
            ("class", *(f"{size.fraction:.0%} of the words" for size in sizes)),
            [(label, *(share_text(size.per_class.get(label)) for size in sizes)) for label in predicted],
        )
    ]


def _coverage_tables(selective: SelectiveResult) -> list[FigureTable]:
    return [
        FigureTable(
            "Accuracy by coverage: only the most confident decisions",
            ("coverage", "texts", "confidence at least", "accuracy"),
            [
                (
                    f"{point.coverage:.0%}",
                    f"{point.texts:,}",
                    f"{point.least_confidence:.1%}",
                    f"{point.accuracy:.1%}",
                )
                for point in selective.points
            ],
            f"Area under the risk–coverage curve (AURC): {selective.aurc:.3f}; the error rate is "
            f"{selective.error:.3f}.",
        )
    ]


def _temperature_rows(calibration: CalibrationResult) -> list[tuple[str, str]]:
    """The temperature, and the error without it; older files lack both."""
    if calibration.ece_before is None:
        return []
    return [
        ("temperature, fitted on validation texts", f"{calibration.temperature:.2f}"),
        ("ECE at a temperature of 1", share_text(calibration.ece_before)),
    ]


def _calibration_tables(calibration: CalibrationResult) -> list[FigureTable]:
    return [
        FigureTable(
            "Decisions by their confidence",
            ("confidence", "texts", "mean confidence", "accuracy"),
            [
                (
                    f"{one.low:.1%} to {one.high:.1%}",
                    f"{one.texts:,}",
                    f"{one.confidence:.1%}",
                    share_text(one.accuracy),
                )
                for one in calibration.curve
            ],
        ),
        FigureTable(
            "Calibration",
            FIGURE,
            [
                ("calibration error (ECE)", share_text(calibration.ece)),
                *_temperature_rows(calibration),
                ("the same of a perfectly calibrated model", f"{calibration.ece_by_chance:.1%}"),
                ("what such a model exceeds in one case of twenty", f"{calibration.ece_by_chance_high:.1%}"),
                ("confidence minus accuracy", share_text(calibration.overconfidence)),
                ("Brier score: 0 is perfect, 2 the worst", number_text(calibration.brier, 3)),
                ("log loss, in nats", number_text(calibration.log_loss, 3)),
            ],
        ),
    ]


def _word_budget_tables(points: Sequence[FrontierPoint]) -> list[FigureTable]:
    rows = [
        (
            word_count(point.most_words),
            number_text(point.active_words, 1),
            share_text(point.accuracy),
            share_text(point.agreement),
        )
        for point in points
    ]
    return [
        FigureTable(
            "Only the strongest words of each text",
            ("at most", "active words", "accuracy", "same label as from all"),
            rows,
            "Strongest by activation in the sparse layer; no label is used.",
        )
    ]


def _reliability(calibration: CalibrationResult) -> list[Picture]:
    bins = calibration.curve
    return [Picture(RELIABILITY, reliability_svg(bins), reliability_sentence(bins))] if bins else []


def _fewer_words(points: Sequence[FrontierPoint], scores: Performance) -> list[Picture]:
    lines = [
        line("only the strongest words", ((p.active_words.mean, p.accuracy) for p in points), 100),
        *level("all words", scores.accuracy.mean, [p.active_words.mean for p in points], 100),
    ]
    return chart("Accuracy with fewer words", Axis("active words per text", log=True), "% right", lines)


def _share(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:.1%}"
