"""The polysemy experiment for people."""

from collections.abc import Mapping
from typing import Any

from lexical_sae.report.interval_text import NOT_MEASURED, share_text
from lexical_sae.report.tables import FigureTable, TablesPage

LIMITS = (
    "Mutual information is adjusted: 0 is chance, 1 is one slot per sense. Clusters are k-means on the hidden state "
    "with as many clusters as slots: what could be told apart without being taught.",
    "Nothing in training asks slots to follow senses; they split as far as the task gains by it. Senses are read by a "
    "linear probe fitted on train mentions; pairs are told by a cosine above a threshold chosen on train pairs.",
)


def polysemy_page(results: Mapping[str, Mapping[str, Any]]) -> TablesPage:
    """Everything that `polysemy.json` holds: one or several models by name."""
    tables: list[FigureTable] = []
    for name, found in results.items():
        tables += _tables(name, found)
    first = next(iter(results.values()))
    return TablesPage(
        title="Polysemy",
        summary=[f"{len(first['words'])} ambiguous words, {first['pairs']} pairs of sentences."],
        tables=tables,
        limits=LIMITS,
    )


def _tables(name: str, found: Mapping[str, Any]) -> list[FigureTable]:
    tables = []
    if found["slots"]:
        columns = ("word", "mentions", "senses", "slots used", "mutual information", "shuffled", "purity", "shuffled")
        rows = [_slot_row(slot) for slot in found["slots"]]
        tables.append(FigureTable(f"{name}: do slots split senses?", (*columns, "clusters"), rows))
    if found["senses"]:
        rows = [("commonest sense", share_text(found["majority"]))]
        rows += [(one["code"], share_text(one["accuracy"])) for one in found["senses"]]
        tables.append(FigureTable(f"{name}: reading senses", ("from", "accuracy"), rows))
    if found["in_context"]:
        rows = [
            (one["code"], share_text(one["accuracy"]), f"{one['by_chance']:.1%}", f"{one['threshold']:.2f}")
            for one in found["in_context"]
        ]
        columns = ("from", "accuracy", "answers shuffled", "cosine above")
        tables.append(FigureTable(f"{name}: the same meaning in two sentences?", columns, rows))
    return tables


def _slot_row(slot: Mapping[str, Any]) -> tuple[str, ...]:
    clusters = slot["clusters"]
    return (
        slot["word"],
        str(slot["mentions"]),
        str(slot["senses"]),
        str(slot["slots_used"]),
        f"{slot['mutual_information']:.2f}",
        f"{slot['mutual_information_shuffled']:.2f}",
        f"{slot['purity']:.1%}",
        f"{slot['purity_shuffled']:.1%}",
        NOT_MEASURED if clusters is None else f"{clusters:.2f}",
    )
