"""How decisions and words went over time."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lexical_sae.report.charts.svg import Axis, Picture, Series, line_chart
from lexical_sae.scale.audit.audit import Cut
from lexical_sae.scale.audit.settings import Every
from lexical_sae.scale.audit.words import Columns

WIDTH, HEIGHT = 420, 270
"""Small, so that letters can be read on a phone without scrolling."""
LINES = 5
"""Lines of a chart at most."""


def period_name(begin: Any, every: Every) -> str:
    """Example: 2026-04-01 by month -> "2026-04"; by quarter -> "2026 Q2" """
    day = str(np.datetime64(begin, "D"))
    quarter = f"{day[:4]} Q{(int(day[5:7]) + 2) // 3}"
    return {"day": day, "week": day, "month": day[:7], "quarter": quarter, "year": day[:4]}[every]


def decision_charts(cut: Cut, classes: Sequence[str], every: Every) -> list[Picture]:
    """The share of each class and of each warning."""
    shown = [("Share of decisions, %", cut.decisions, "prediction", list(classes))]
    kinds = list(dict.fromkeys(map(str, cut.unusual["kind"])))
    if kinds:
        shown.append(("Unusual texts, %", cut.unusual, "kind", kinds))
    return [_chart(title, columns, name, values[:LINES], "share", every, 100) for title, columns, name, values in shown]


def word_charts(cut: Cut, classes: Sequence[str], every: Every) -> list[Picture]:
    """The contribution per text of each class's strongest words."""
    charts = []
    for name in classes:
        mine = {column: values[cut.words["prediction"] == name] for column, values in cut.words.items()}
        words = list(dict.fromkeys(map(str, mine["word"])))[:LINES]
        if words:
            charts.append(_chart(f"{name}: contribution per text", mine, "word", words, "per_text", every))
    return charts


def _chart(
    title: str, columns: Columns, of: str, lines: Sequence[str], value: str, every: Every, times: float = 1
) -> Picture:
    periods = np.unique(columns["period"])
    names = tuple(period_name(period, every) for period in periods)
    drawn = [_series(line, columns, columns[of] == line, periods, value, times) for line in lines]
    axis = Axis("", names=names)
    told = f"{title} from {names[0]} to {names[-1]}: {'; '.join(_told(line) for line in drawn)}"
    return Picture(title, line_chart(title, axis, Axis(""), drawn, width=WIDTH, height=HEIGHT, told=told), told)


def _series(name: str, columns: Columns, here: Any, periods: Any, value: str, times: float) -> Series:
    at = np.searchsorted(periods, columns["period"][here]).tolist()
    low, high = columns[f"{value}_low"][here] * times, columns[f"{value}_high"][here] * times
    ends = [None if np.isnan(a) else (float(a), float(b)) for a, b in zip(low, high, strict=True)]
    return Series(name, at, (columns[value][here] * times).tolist(), ends)


def _told(line: Series) -> str:
    return f"{line.name} from {line.y[0]:.3g} to {line.y[-1]:.3g}"
