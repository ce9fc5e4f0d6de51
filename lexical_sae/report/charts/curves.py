"""How a training run went: one small chart for each figure of its history."""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from lexical_sae.report.charts.svg import Axis, Picture, Series, line_chart

WIDTH, HEIGHT = 420, 270
"""Small, so that letters can be read on a phone without scrolling."""
POINTS = 40
"""Steps are averaged in that many groups of equal size: single batches are too noisy to show a trend."""
CHARTS: dict[str, dict[str, str]] = {
    "Cross-entropy": {"ce": "training"},
    "Active words": {"active_words": "training"},
    "Multipliers": {"lambda": "lambda (CE)", "mu": "mu (words)"},
}
"""Title of each chart that every run may have, and the records it draws with the name of each line."""
NO_TERMS = {"step", "violation", "tau", *(key for lines in CHARTS.values() for key in lines)}
VALIDATION = "validation"


def training_curves(records: Iterable[Mapping[str, Any]]) -> tuple[Picture, ...]:
    """Cross-entropy, active words, multipliers, and each term of the objective by itself; only what was recorded.

    A chart has two lines at most, so that blue and orange tell them apart.
    """
    steps, validations = _by_step(records)
    terms = dict.fromkeys(key for step in steps for key in step if key not in NO_TERMS and _is_number(step[key]))
    charts = {**CHARTS, **{f"Term: {term.replace('_', ' ')}": {term: "training"} for term in terms}}
    drawn = []
    for title, lines in charts.items():
        found = [_smoothed(name, _points(steps, key)) for key, name in lines.items()]
        found += [_line(VALIDATION, _points(validations, key)) for key in lines]
        if shown := [line for line in found if len(line.x)]:
            chart = line_chart(title, Axis("step"), Axis(""), shown, width=WIDTH, height=HEIGHT)
            drawn.append(Picture(title, chart, _told(title, shown)))
    return tuple(drawn)


def _by_step(records: Iterable[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Steps, and validations with the number of the step that they came after."""
    steps, validations = [], []
    for record in records:
        if record.get("event") == VALIDATION:
            validations.append({**record, "step": steps[-1]["step"] if steps else 0})
        elif _is_number(record.get("step")):
            steps.append(record)
    return steps, validations


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _points(records: Sequence[Mapping[str, Any]], key: str) -> list[tuple[float, float]]:
    """Step and value wherever the value was recorded and is a number."""
    return [(record["step"], record[key]) for record in records if _is_number(record.get(key))]


def _line(name: str, points: Sequence[tuple[float, float]]) -> Series:
    return Series(name, [x for x, _ in points], [y for _, y in points])


def _smoothed(name: str, points: Sequence[tuple[float, float]]) -> Series:
    """Means of neighbouring steps, each where its steps lie on average."""
    count = min(POINTS, len(points))
    groups = [points[i * len(points) // count : (i + 1) * len(points) // count] for i in range(count)]
    return _line(name, [(fmean(x for x, _ in group), fmean(y for _, y in group)) for group in groups])


def _told(title: str, lines: Sequence[Series]) -> str:
    """Example: "Cross-entropy: training from 0.694 to 0.201, up to step 930" """
    each = [f"{line.name} from {line.y[0]:.3g} to {line.y[-1]:.3g}" for line in lines]
    last = max(x for line in lines for x in line.x)
    return f"{title}: {'; '.join(each)}, up to step {last:.0f}"
