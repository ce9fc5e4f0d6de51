"""Line charts of an evaluation; figures that were not measured are left out."""

import math
from collections.abc import Iterable, Sequence
from typing import TypeGuard

from lexical_sae.evaluation.intervals import Interval
from lexical_sae.report.charts.curves import HEIGHT, WIDTH
from lexical_sae.report.charts.svg import Axis, Picture, Series, line_chart, short_number


def line(name: str, points: Iterable[tuple[float | None, Interval]], factor: float) -> Series:
    """One line of means with their confidence intervals, without those not measured or without place on a log axis."""
    kept = [(x, y) for x, y in points if _is_positive(x) and _is_number(y.mean)]
    ends = [
        (factor * low, factor * high) if _is_number(low) and _is_number(high) else None
        for low, high in ((y.low, y.high) for _, y in kept)
    ]
    return Series(name, [x for x, _ in kept], [factor * y.mean for _, y in kept], ends)


def level(name: str, value: float | None, at: Sequence[float | None], factor: float) -> list[Series]:
    """A guide at one height from the first to the last place."""
    places = [x for x in at if _is_positive(x)]
    if not places or not _is_number(value):
        return []
    return [Series(name, [min(places), max(places)], [factor * value] * 2, is_guide=True)]


def chart(title: str, across: Axis, up: str, lines: Sequence[Series], *, from_zero: bool = False) -> list[Picture]:
    """The chart; nothing where there are no points but guides."""
    drawn = [one for one in lines if len(one.x)]
    if all(one.is_guide for one in drawn):
        return []
    description = f"{title}. " + "; ".join(_described(one) for one in drawn)
    axis = Axis(up, from_zero=from_zero)
    svg = line_chart(title, across, axis, drawn, width=WIDTH, height=HEIGHT, told=description)
    return [Picture(title, svg, description)]


def _described(line: Series) -> str:
    """Example: "random words: 1 → 49.1, 50 → 71.2" """
    if line.is_guide:
        return f"{line.name}: {line.y[0]:.3g}"
    pairs = zip(line.x, line.y, strict=True)
    return f"{line.name}: " + ", ".join(f"{short_number(x)} → {y:.3g}" for x, y in pairs)


def _is_number(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def _is_positive(value: float | None) -> TypeGuard[float]:
    return _is_number(value) and value > 0
