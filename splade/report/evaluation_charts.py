"""An evaluation as small charts, from plain data; a chart without figures is left out."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

from splade.report.curves import HEIGHT, WIDTH
from splade.report.picture import Picture
from splade.report.reliability_plot import TITLE as RELIABILITY
from splade.report.reliability_plot import reliability_svg, reliability_told
from splade.report.svg import Axis, Series, line_chart, short_number

Data = Mapping[str, Any]
ORDERS = {"direct": "contributions", "leave_one_out": "exact effects", "random": "random words"}
"""Who puts words in order."""
SHARE_OF_WORDS = Axis("% of a text's active words", log=True)


def decision_charts(found: Data) -> list[Picture]:
    """Reliability, and accuracy with fewer words."""
    return [*_reliability(found["calibration"]["curve"]), *_frontier(found["frontier"], found["performance"])]


def truth_charts(found: Data) -> list[Picture]:
    """Circuits alone, words taken away, and what probability goes with them, each beside its controls."""
    budgets = {name: found["eraser"]["orders"][key]["budgets"] for key, name in ORDERS.items()}
    return [
        *_circuits(found["completeness"]),
        *_removals(found["removability"]),
        *_erased("Probability lost without the top words", budgets, "comprehensiveness"),
        *_erased("Probability lost with the top words alone", budgets, "sufficiency"),
    ]


def _reliability(bins: Sequence[Data]) -> list[Picture]:
    return [Picture(RELIABILITY, reliability_svg(bins), reliability_told(bins))] if bins else []


def _frontier(points: Sequence[Data], scores: Data) -> list[Picture]:
    lines = [
        _line("only the strongest words", ((p["active_words"]["mean"], p["accuracy"]) for p in points), 100),
        *_level("all words", scores["accuracy"]["mean"], [p["active_words"]["mean"] for p in points], 100),
    ]
    return _chart("Accuracy with fewer words", Axis("active words per text", log=True), "% right", lines)


def _circuits(completeness: Data) -> list[Picture]:
    sizes = completeness["sizes"]
    lines = [
        _line(name, ((100 * size["fraction"], size[key]["agreement"]) for size in sizes), 100)
        for key, name in (("circuit", "strongest words"), ("random", "random words"))
    ]
    at = [100 * size["fraction"] for size in sizes]
    lines += _level("no words", completeness["empty"]["agreement"]["mean"], at, 100)
    return _chart("Labels that stay, from a few words alone", SHARE_OF_WORDS, "% of texts", lines)


def _removals(removability: Data) -> list[Picture]:
    rates = removability["removed"]
    lines = [_line(name, ((rate["words"], rate["orders"][key]) for rate in rates), 100) for key, name in ORDERS.items()]
    lines += _level("without all words", removability["everything"]["mean"], [rate["words"] for rate in rates], 100)
    title = "Labels that change without the top words"
    return _chart(title, Axis("words taken away", log=True), "% of texts", lines, from_zero=True)


def _erased(title: str, budgets: Mapping[str, Sequence[Data]], key: str) -> list[Picture]:
    lines = [_line(name, ((100 * one["fraction"], one[key]) for one in some), 1) for name, some in budgets.items()]
    return _chart(title, SHARE_OF_WORDS, f"{key}, by who picks the words", lines, from_zero=True)


def _line(name: str, points: Iterable[tuple[float | None, Data]], factor: float) -> Series:
    """Means with their intervals; points that were not measured or have no place on a logarithmic axis are left out."""
    kept = [(x, y) for x, y in points if _is_positive(x) and _is_number(y["mean"])]
    ends = [(factor * y["low"], factor * y["high"]) if _is_number(y["low"]) else None for _, y in kept]
    return Series(name, [x for x, _ in kept], [factor * y["mean"] for _, y in kept], ends)


def _level(name: str, value: float | None, at: Sequence[float | None], factor: float) -> list[Series]:
    """A guide at one height from the first to the last place."""
    places = [x for x in at if _is_positive(x)]
    if not places or not _is_number(value):
        return []
    return [Series(name, [min(places), max(places)], [factor * value] * 2, is_guide=True)]


def _chart(title: str, across: Axis, up: str, lines: Sequence[Series], *, from_zero: bool = False) -> list[Picture]:
    drawn = [line for line in lines if len(line.x)]
    if all(line.is_guide for line in drawn):
        return []
    told = f"{title}. " + "; ".join(_told(line) for line in drawn)
    chart = line_chart(title, across, Axis(up, from_zero=from_zero), drawn, width=WIDTH, height=HEIGHT, told=told)
    return [Picture(title, chart, told)]


def _told(line: Series) -> str:
    """Example: "random words: 1 → 49.1, 50 → 71.2" """
    if line.is_guide:
        return f"{line.name}: {line.y[0]:.3g}"
    pairs = zip(line.x, line.y, strict=True)
    return f"{line.name}: " + ", ".join(f"{short_number(x)} → {y:.3g}" for x, y in pairs)


def _is_number(value: Any) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def _is_positive(value: Any) -> TypeGuard[float]:
    return _is_number(value) and value > 0
