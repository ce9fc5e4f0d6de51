"""The long-context experiment for people."""

from collections.abc import Mapping
from typing import Any

from lexical_sae.report.interval_text import number_text, share_text
from lexical_sae.report.tables import FigureTable, TablesPage

COLUMNS = ("needle at", "accuracy", "same label", "rank correlation", "top words kept", "on needle's words", "active")
LIMITS = (
    "A document longer than the model reads is cut into overlapping windows; each of its words is as strong as in the "
    "window where it is strongest, and one decision is made on them all. A longer encoder might say otherwise.",
    "The filler is plain sentences about furniture and places. “No needle” is that filler alone, compared with the "
    "needle as if it held it: what agreement there is by chance. A needle longer than the document is left out.",
)


def long_context_page(results: Mapping[str, Any]) -> TablesPage:
    """Everything that `long_context.json` holds."""
    points = results["points"]
    lengths = sorted({point["length"] for point in points})
    return TablesPage(
        title="Long context",
        summary=[
            f"{results['needles']} test texts hidden in neutral documents; the model reads {results['max_length']} "
            f"tokens at once. Alone: accuracy {share_text(results['alone_accuracy'])}, "
            f"{number_text(results['alone_active_words'], 0)} active words."
        ],
        tables=[
            FigureTable(
                f"{length:,} tokens",
                COLUMNS,
                [_row(point) for point in points if point["length"] == length],
            )
            for length in lengths
        ],
        limits=LIMITS,
    )


def _row(point: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        f"{point['place']} ({point['same_label']['count']} texts)",
        share_text(point["accuracy"]),
        share_text(point["same_label"]),
        number_text(point["rank_correlation"]),
        share_text(point["top_words"]),
        share_text(point["needle_share"]),
        number_text(point["active_words"], 0),
    )
