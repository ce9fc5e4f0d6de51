"""A contest of explainers as tables of text: plain data in, nothing computed but the order of the rows.

Data is what `ArenaResults.as_dict` gives, fresh or read back from `faithfulness.json`, or from an evaluation, where one
table sums it up.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from splade.report.interval_text import NOT_MEASURED, is_missing, number_text, share_text
from splade.report.tables import FigureTable, TablesPage

Data = Mapping[str, Any]
LIMITS = (
    "On single removals the exact effect is first by definition; it checks the ground and wins nothing. Every other "
    "place is as found.",
    "Where words of the text are masked, explainers of active words are shared out by the positions that won. Masks "
    "are strange to a model, equally for all.",
    "Agreement with people says what convinces, not what the model does.",
    "Milliseconds are processor time beyond the prediction. Brackets: 95 % intervals over texts.",
)
SAME = "Direct attribution is gradient × strength here, so that is no explainer of its own."


def arena_page(title: str, found: Data) -> TablesPage:
    """The contest, for the terminal or a page."""
    first, *others = LIMITS
    limits = LIMITS if _has_gradient_times_strength(found) else (first, SAME, *others)
    return TablesPage(title, arena_summary(found), arena_tables(found), limits)


def arena_tables(found: Data) -> list[FigureTable]:
    """All grounds, and the cost."""
    return [
        FigureTable(
            "Active words taken away: the known effects of removal",
            ("explainer", "rank (Spearman)", "rank (Kendall)", "off by", "top word flips", *_ERASED),
            [_removal_row(name, found["removal"][name]) for name in _ordered(found["removal"], _spearman)],
        ),
        FigureTable(
            "Words of the text masked",
            ("explainer", *_ERASED, "above random"),
            [_deletion_row(name, found["deletion"][name]) for name in _ordered(found["deletion"], _comprehensiveness)],
        ),
        *(_rationale_table(name, result) for name, result in found["rationales"].items()),
        FigureTable(
            "What one explanation costs",
            ("explainer", "milliseconds", "peak MB", "what it does"),
            [_cost_row(found, name) for name in _ordered(found["cost"], lambda one: -one["milliseconds"]["mean"])],
        ),
    ]


def compared_table(found: Data, *, with_intervals: bool = True) -> FigureTable:
    """The comparison of an evaluation, both settings in one table."""
    names = [
        *_ordered(found["removal"], _spearman),
        *(name for name in found["deletion"] if name not in found["removal"]),
    ]
    return FigureTable(
        "Attribution methods compared",
        ("method", "rank correlation", *_BRIEFLY, "text masked", "ms"),
        [_compared_row(found, name, with_intervals) for name in names],
        "Active words removed: rank correlation (Spearman) with the exact effects of single removals; probability lost "
        "without the top words (comprehensiveness) and with these alone (sufficiency, low is good). Text masked: "
        f"comprehensiveness when words of the text are masked. {' '.join(arena_summary(found))}",
    )


def _compared_row(found: Data, name: str, with_intervals: bool) -> tuple[str, ...]:
    removal, masked = found["removal"].get(name), found["deletion"][name]["erasure"]["comprehensiveness"]
    of_words = (removal["spearman"], *(removal["erasure"][key] for key in _BRIEFLY)) if removal else (None,) * 3
    figures = [
        one if with_intervals or one is None else {**one, "low": None, "high": None} for one in (*of_words, masked)
    ]
    return (_shown(name), *map(_number, figures), f"{found['cost'][name]['milliseconds']['mean']:.1f}")


def arena_summary(found: Data) -> list[str]:
    """What was measured and whether the checks hold, in sentences."""
    checks, prediction = found["checks"], found["prediction_milliseconds"]
    lines = [
        f"{found['texts']} texts; explainers that draw were asked with {_seeds(found['seeds'])}. "
        f"Predicting takes {prediction['mean']:.0f} ms of processor time.",
        f"Check: exact leave-one-out is {_first(checks['leave_one_out_is_first'])} on single removals.",
        f"Check: there, random is {_last(checks['random_is_last'])}.",
    ]
    if not _has_gradient_times_strength(found):
        gap = checks["direct_minus_gradient_times_strength"]
        lines.append(f"Check: direct attribution and gradient × strength differ by at most {gap:.0e}.")
    if found["texts_without_words"]:
        lines.append(f"Left out: {found['texts_without_words']} texts without words.")
    return lines + [f"Not here: {reason}." for reason in found["left_out"]]


def _has_gradient_times_strength(found: Data) -> bool:
    """Whether it is an explainer of its own: of heads where direct attribution is something else."""
    return "gradient_times_strength" in found["explainers"]


_BRIEFLY = ("comprehensiveness", "sufficiency")
_ERASED = ("comprehensiveness", "over seeds", "sufficiency (low is good)", "flips")


def _removal_row(name: str, scores: Data) -> tuple[str, ...]:
    ranks = [_number(scores[key]) for key in ("spearman", "kendall")]
    return (
        _shown(name),
        *ranks,
        share_text(scores["error"]),
        share_text(scores["top_word"]),
        *_erased(scores["erasure"]),
    )


def _deletion_row(name: str, scores: Data) -> tuple[str, ...]:
    return (_shown(name), *_erased(scores["erasure"]), _number(scores["erasure"]["advantage"]))


def _erased(erasure: Data) -> tuple[str, ...]:
    return (
        _number(erasure["comprehensiveness"]),
        _reach(erasure["between_seeds"]),
        _number(erasure["sufficiency"]),
        share_text(erasure["flips"]),
    )


def _rationale_table(name: str, result: Data) -> FigureTable:
    title = (
        f"Agreement with people on {result['texts']} texts of {name} ({result['left_out']} left out; people mark "
        f"{result['marked_share']:.0%} of the words, and of all marked ones the model saw {result['seen_share']:.0%})"
    )
    columns = ("explainer", "AUPRC", "over seeds", "token F1", "IOU F1", "above random")
    rows = [
        (
            _shown(one),
            _number(scores["auprc"]),
            _reach(scores["between_seeds"]),
            *(_number(scores[key]) for key in ("token_f1", "iou_f1", "advantage")),
        )
        for one in _ordered(result["scores"], lambda scores: scores["auprc"]["mean"])
        for scores in (result["scores"][one],)
    ]
    return FigureTable(title, columns, rows)


def _cost_row(found: Data, name: str) -> tuple[str, ...]:
    cost = found["cost"][name]
    megabytes = cost["megabytes"]["mean"]
    return (
        _shown(name),
        f"{cost['milliseconds']['mean']:.1f}",
        NOT_MEASURED if is_missing(megabytes) else f"{megabytes:.0f}",
        found["explainers"][name]["about"],
    )


def _ordered(scores: Data, key: Callable[[Data], float | None]) -> list[str]:
    """Names, the highest first; who has no figure comes last."""

    def place(name: str) -> float:
        value = key(scores[name])
        return -math.inf if value is None or math.isnan(value) else value

    return sorted(scores, key=place, reverse=True)


def _spearman(scores: Data) -> float | None:
    return scores["spearman"]["mean"]


def _comprehensiveness(scores: Data) -> float | None:
    return scores["erasure"]["comprehensiveness"]["mean"]


def _shown(name: str) -> str:
    return name.replace("_", " ")


def _seeds(count: int) -> str:
    return "one seed" if count == 1 else f"{count} seeds"


def _first(holds: bool) -> str:
    return "first" if holds else "NOT first, which must not be: do not trust these figures"


def _last(holds: bool) -> str:
    return "last as far as the intervals tell" if holds else "not last: somebody is reliably worse than a lot"


def _number(interval: Data | None) -> str:
    return number_text(interval, 3)


def _reach(interval: Data | None) -> str:
    """From where to where the mean of a seed may lie."""
    if interval is None or interval["low"] is None:
        return NOT_MEASURED
    return f"{interval['low']:.3f} to {interval['high']:.3f}"
