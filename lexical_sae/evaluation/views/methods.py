"""Attribution methods compared, as tables of text; nothing is computed here but the order of the rows."""

import math
from collections.abc import Callable, Mapping
from typing import TypeVar

from lexical_sae.evaluation.explainers.erasure import Erasure
from lexical_sae.evaluation.explainers.plausibility import PlausibilityScores
from lexical_sae.evaluation.explainers.removal import RemovalScores
from lexical_sae.evaluation.explainers.results import ArenaResults, Cost, RationaleResult
from lexical_sae.evaluation.intervals import Interval
from lexical_sae.report.interval_text import NOT_MEASURED, is_missing, number_text, share_text
from lexical_sae.report.tables import FigureTable, TablesPage

LIMITS = (
    "On single removals the leave-one-out effect is first by definition; it checks the setting and wins nothing. Every "
    "other place is as measured.",
    "Where words of the text are masked, a method's scores of active words are shared out over the positions that "
    "activated them. Masks are out of distribution for a model, equally for all methods.",
    "Agreement with human rationales measures what convinces people, not what the model does.",
    "Milliseconds are processor time beyond the prediction. Brackets: 95 % confidence intervals over texts.",
)
SAME = "Direct attribution is gradient × activation here, so that is not a method of its own."
Scores = TypeVar("Scores")


def explainers_page(title: str, found: ArenaResults) -> TablesPage:
    """The comparison, for the terminal or a page."""
    first, *others = LIMITS
    limits = LIMITS if _has_gradient_times_activation(found) else (first, SAME, *others)
    return TablesPage(title, explainers_summary(found), explainers_tables(found), limits)


def explainers_tables(found: ArenaResults) -> list[FigureTable]:
    """Every setting, and the cost."""
    removal = _ordered(found.removal, lambda one: one.spearman.mean)
    deletion = _ordered(found.deletion, lambda one: one.erasure.comprehensiveness.mean)
    cost = _ordered(found.cost, lambda one: -one.milliseconds.mean)
    return [
        FigureTable(
            "Active words removed: agreement with the leave-one-out effects",
            ("method", "rank (Spearman)", "rank (Kendall)", "error", "top word flips", *_ERASED),
            [_removal_row(name, scores) for name, scores in removal],
        ),
        FigureTable(
            "Words of the text masked",
            ("method", *_ERASED, "above random"),
            [(_shown(name), *_erased(one.erasure), _number(one.erasure.advantage)) for name, one in deletion],
        ),
        *(_rationale_table(name, result) for name, result in found.rationales.items()),
        FigureTable(
            "What one explanation costs",
            ("method", "milliseconds", "peak MB", "what it does"),
            [_cost_row(name, one, found.explainers[name].about) for name, one in cost],
        ),
    ]


def compared_table(found: ArenaResults, *, with_intervals: bool = True) -> FigureTable:
    """The comparison of an evaluation, both settings in one table."""
    names = [
        *(name for name, _ in _ordered(found.removal, lambda one: one.spearman.mean)),
        *(name for name in found.deletion if name not in found.removal),
    ]
    return FigureTable(
        "Attribution methods compared",
        ("method", "rank correlation", "comprehensiveness", "sufficiency", "text masked", "ms"),
        [_compared_row(found, name, with_intervals) for name in names],
        "Active words removed: rank correlation (Spearman) with the leave-one-out effects; probability lost "
        "without the top-attributed words (comprehensiveness) and with these alone (sufficiency, low is good). Text "
        "masked: comprehensiveness when words of the text are masked. " + " ".join(explainers_summary(found)),
    )


def _compared_row(found: ArenaResults, name: str, with_intervals: bool) -> tuple[str, ...]:
    removal, masked = found.removal.get(name), found.deletion[name].erasure.comprehensiveness
    of_words = (
        (removal.spearman, removal.erasure.comprehensiveness, removal.erasure.sufficiency) if removal else (None,) * 3
    )
    figures = (number_text(one, 3, limits=with_intervals) for one in (*of_words, masked))
    return (_shown(name), *figures, f"{found.cost[name].milliseconds.mean:.1f}")


def explainers_summary(found: ArenaResults) -> list[str]:
    """What was measured and whether the checks hold, in sentences."""
    checks, prediction = found.checks, found.prediction_milliseconds
    seeds = "one seed" if found.seeds == 1 else f"{found.seeds} seeds"
    is_first = "first" if checks.leave_one_out_is_first else "NOT first, as it must be: do not trust these figures"
    is_last = (
        "last as far as the intervals show" if checks.random_is_last else "not last: a method is reliably worse than it"
    )
    lines = [
        f"{found.texts} texts; methods with random choices ran with {seeds}. "
        f"Predicting takes {prediction.mean:.0f} ms of processor time.",
        f"Check: exact leave-one-out is {is_first} on single removals.",
        f"Check: there, random order is {is_last}.",
    ]
    if not _has_gradient_times_activation(found):
        gap = checks.direct_minus_gradient_times_activation
        lines.append(f"Check: direct attribution and gradient × activation differ by at most {gap:.0e}.")
    if found.texts_without_words:
        lines.append(f"Left out: {found.texts_without_words} texts without words.")
    return lines + [f"Not compared: {reason}." for reason in found.left_out]


def _has_gradient_times_activation(found: ArenaResults) -> bool:
    """Whether it is a method of its own, as for heads where direct attribution is something else."""
    return "gradient_times_activation" in found.explainers


_ERASED = ("comprehensiveness", "across seeds", "sufficiency (low is good)", "flips")


def _removal_row(name: str, scores: RemovalScores) -> tuple[str, ...]:
    return (
        _shown(name),
        *(_number(rank) for rank in (scores.spearman, scores.kendall)),
        *(share_text(share) for share in (scores.error, scores.top_word)),
        *_erased(scores.erasure),
    )


def _erased(erasure: Erasure) -> tuple[str, ...]:
    return (
        _number(erasure.comprehensiveness),
        _limits(erasure.between_seeds),
        _number(erasure.sufficiency),
        share_text(erasure.flips),
    )


def _rationale_table(name: str, result: RationaleResult) -> FigureTable:
    title = (
        f"Agreement with human rationales on {result.texts} texts of {name} ({result.left_out} left out; people mark "
        f"{result.marked_share:.0%} of the words, and the model saw {result.seen_share:.0%} of all marked ones)"
    )
    columns = ("method", "AUPRC", "across seeds", "token F1", "IOU F1", "above random")
    ordered = _ordered(result.scores, lambda scores: scores.auprc.mean)
    return FigureTable(title, columns, [_rationale_row(one, scores) for one, scores in ordered])


def _rationale_row(name: str, scores: PlausibilityScores) -> tuple[str, ...]:
    others = (_number(one) for one in (scores.token_f1, scores.iou_f1, scores.advantage))
    return (_shown(name), _number(scores.auprc), _limits(scores.between_seeds), *others)


def _cost_row(name: str, cost: Cost, about: str) -> tuple[str, ...]:
    megabytes = cost.megabytes.mean
    peak = NOT_MEASURED if is_missing(megabytes) else f"{megabytes:.0f}"
    return (_shown(name), f"{cost.milliseconds.mean:.1f}", peak, about)


def _ordered(scores: Mapping[str, Scores], key: Callable[[Scores], float]) -> list[tuple[str, Scores]]:
    """Names with their scores, the highest first; without a figure last."""

    def place(named: tuple[str, Scores]) -> float:
        value = key(named[1])
        return -math.inf if math.isnan(value) else value

    return sorted(scores.items(), key=place, reverse=True)


def _shown(name: str) -> str:
    return name.replace("_", " ")


def _number(interval: Interval) -> str:
    return number_text(interval, 3)


def _limits(interval: Interval | None) -> str:
    """The confidence limits alone."""
    if interval is None or interval.low is None:
        return NOT_MEASURED
    return f"{interval.low:.3f} to {interval.high:.3f}"
