"""Figures of labels and numbers, as a run or an evaluation keeps them: rows and tables."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lexical_sae.report.tables import FigureTable


def task_rows(figures: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """A row per figure with its interval. Example: ("macro F1", "61.2% (57.0% to 65.1%)", "mean over labels")"""
    return [(one["title"], figure_text(one), one["remark"]) for one in figures]


def figure_text(figure: Mapping[str, Any]) -> str:
    """A figure with its 95 % interval."""
    form = "{:.1%}".format if figure["is_share"] else "{:.3g}".format
    return f"{form(figure['value'])} ({form(figure['low'])} to {form(figure['high'])})"


def label_tables(rows: Sequence[Mapping[str, Any]]) -> list[FigureTable]:
    """A row per label; no table where there are none."""
    if not rows:
        return []
    cells = [
        (
            row["label"],
            str(row["texts"]),
            f"{row['f1']:.1%} ({row['low']:.1%} to {row['high']:.1%})",
            f"{row['precision']:.1%}",
            f"{row['recall']:.1%}",
            f"{1 / (1 + math.exp(-row['threshold'])):.0%}",
        )
        for row in rows
    ]
    note = (
        "A threshold is the probability, at temperature 1, from which on a label is decided for; chosen on validation."
    )
    return [FigureTable("Labels", ("label", "texts", "F1", "precision", "recall", "threshold"), cells, note)]


def difference_text(found: Mapping[str, Any], *, is_share: bool) -> str:
    """The model minus a baseline, with the ends of its interval."""
    form = "{:+.1%}".format if is_share else "{:+.3g}".format
    return f"{form(found['mean'])} ({form(found['low'])} to {form(found['high'])})"
