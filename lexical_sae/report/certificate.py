"""Removals and their certificates in the terminal, from plain data."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from lexical_sae.report.printable import shown
from lexical_sae.report.tables import Cell, FigureTable, table_view
from lexical_sae.report.terminal import figures_table

Data = Mapping[str, Any]
MOST_CHANGES = 40
"""Words that a terminal lists; files have all of them."""
MOST_CLASSES = 3


def removal_table(words: Mapping[str, Sequence[str]], closed_already: Sequence[str]) -> Group:
    """The words that were asked for, and the dimensions that are closed for each."""
    rows = [(shown(word), shown(", ".join(names)), "") for word, names in words.items()]
    parts: list[RenderableType] = [figures_table("Closed for every text", rows)]
    if closed_already:
        parts.append(Text(f"closed already: {shown(', '.join(closed_already))}", style="dim"))
    return Group(*parts)


def weights_table(changes: Sequence[Data], labels: Sequence[str]) -> Group:
    """Words with their weights before and after, for each class that they changed for."""
    rows: list[tuple[str, ...]] = []
    for change in changes[:MOST_CHANGES]:
        moved = zip(labels, change["before"], change["after"], strict=True)
        # Where one class was set, the others moved a little to make room: the greatest changes matter.
        ordered = sorted(moved, key=lambda cell: -abs(cell[2] - cell[1]))[:MOST_CLASSES]
        rows += [
            ("" if number else change["word"], label, f"{before:+.3f}", f"{after:+.3f}")
            for number, (label, before, after) in enumerate(ordered)
        ]
    more = len(changes) - MOST_CHANGES
    note = f"and {more} more words" if more > 0 else ""
    return table_view(FigureTable("Weights", ("word", "class", "before", "after"), rows, note, left=2))


def certificate_view(certificate: Data) -> Group:
    """The levels that a certificate holds."""
    construction = certificate["construction"]
    claims = {
        "removed": "activation exactly zero for every text",
        "changed": "weights as given, the old ones in the certificate",
    }
    rows = [
        (kind, _names([dimension["name"] for dimension in construction[kind]]), claim)
        for kind, claim in claims.items()
        if construction.get(kind)
    ]
    if construction.get("added"):
        rows.append(("added", _names(construction["added"]), "dimensions for words that the original lacks"))
    rows.append(("unchanged", "everything else", "input embedding included, by SHA-256"))
    parts: list[RenderableType] = [figures_table("Level 1: by construction", rows)]
    if "effect" in certificate:
        parts += [figures_table(*_effect_figures(certificate["effect"])), _words_table(certificate["effect"]["words"])]
    if "leakage" in certificate:
        parts.append(figures_table(*_leakage_figures(certificate["leakage"])))
    parts.append(Text(certificate["not_claimed"], style="dim"))
    return Group(*parts)


def _names(names: Sequence[str]) -> str:
    more = len(names) - MOST_CHANGES
    return shown(", ".join(names[:MOST_CHANGES])) + (f" and {more} more" if more > 0 else "")


def checks_table(checks: Sequence[Data]) -> Group:
    """Each claim with its verdict."""
    rows = [
        (
            Cell("holds", "for") if check["holds"] else Cell("FAILS", "against"),
            check["claim"],
            Cell(check["detail"], "against"),
        )
        for check in checks
    ]
    return table_view(FigureTable("", ("", "", ""), rows, left=3))


def _effect_figures(effect: Data) -> tuple[str, list[tuple[str, str, str]]]:
    total = effect["decisions"]
    rows = [
        ("touched", f"{effect['touched']} of {total}", "decisions in which one of these words is active"),
        ("flipped", str(effect["flipped"]), "decisions that are another label now"),
        ("hidden units switched", str(effect["region_changed"]), "contributions need not predict the effect there"),
        ("mean effect", f"{effect['mean_effect']:.3f}", f"at most {effect['largest_effect']:.3f}, class-centred logit"),
    ]
    if "accuracy_before" in effect:
        rows.append(("accuracy", f"{effect['accuracy_after']:.1%}", f"before: {effect['accuracy_before']:.1%}"))
    return f"Level 2: effect on {shown(effect['data']['name'])}", rows


def _leakage_figures(leakage: Data) -> tuple[str, list[tuple[str, str, str]]]:
    rows = [
        (
            shown(score["representation"]),
            f"{score['accuracy']:.1%}",
            f"{score['low']:.1%} to {score['high']:.1%}, {score['probe']}",
        )
        for score in leakage["scores"]
    ]
    rows.append(("commonest value", f"{leakage['majority']:.1%}", "accuracy of always predicting it"))
    return f"Level 3: how well {shown(leakage['concept'])} can still be read", rows


def _words_table(words: Sequence[Data]) -> Group:
    rows = [
        (
            word["name"],
            str(word["decisions"]),
            f"{word['mean_activation']:.2f}",
            f"{word['mean_contribution']:+.3f}",
            f"{word.get('mean_contribution_after', 0.0):+.3f}",
        )
        for word in words
    ]
    return table_view(FigureTable("", ("word", "decisions", "activation", "contribution", "after"), rows))
