"""Removals and their certificates in the terminal, from plain data."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from splade.report.printable import shown
from splade.report.terminal import figures_table

Data = Mapping[str, Any]


def removal_table(words: Mapping[str, Sequence[str]], closed_already: Sequence[str]) -> Group:
    """The words that were asked for, and the dimensions that are closed for each."""
    rows = [(shown(word), shown(", ".join(names)), "") for word, names in words.items()]
    parts: list[RenderableType] = [figures_table("Closed for every text", rows)]
    if closed_already:
        parts.append(Text(f"closed already: {shown(', '.join(closed_already))}", style="dim"))
    return Group(*parts)


def certificate_view(certificate: Data) -> Group:
    """The levels that a certificate holds."""
    removed = certificate["construction"]["removed"]
    names = ", ".join(shown(dimension["name"]) for dimension in removed)
    rows = [
        ("removed", names, "strength bitwise zero for every text"),
        ("unchanged", "everything else", "input embedding included, by SHA-256"),
    ]
    parts: list[RenderableType] = [figures_table("Level 1: by construction", rows)]
    if "effect" in certificate:
        parts += [figures_table(*_effect_figures(certificate["effect"])), _words_table(certificate["effect"]["words"])]
    if "leakage" in certificate:
        parts.append(figures_table(*_leakage_figures(certificate["leakage"])))
    parts.append(Text(certificate["not_claimed"], style="dim"))
    return Group(*parts)


def checks_table(checks: Sequence[Data]) -> Table:
    """Each claim with its verdict."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for check in checks:
        verdict = Text("holds", style="green") if check["holds"] else Text("FAILS", style="bold red")
        table.add_row(verdict, Text(shown(check["claim"])), Text(shown(check["detail"]), style="red"))
    return table


def _effect_figures(effect: Data) -> tuple[str, list[tuple[str, str, str]]]:
    total = effect["decisions"]
    rows = [
        ("touched", f"{effect['touched']} of {total}", "decisions in which a removed word was active"),
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
    rows.append(("commonest value", f"{leakage['majority']:.1%}", "what knowing nothing gives"))
    return f"Level 3: how well {shown(leakage['concept'])} can still be read", rows


def _words_table(words: Sequence[Data]) -> Table:
    table = Table("word", box=None, padding=(0, 2, 0, 0))
    for column in ("decisions", "strength", "contribution"):
        table.add_column(column, justify="right")
    for word in words:
        figures = (f"{word['mean_strength']:.2f}", f"{word['mean_contribution']:+.3f}")
        table.add_row(Text(shown(word["name"])), str(word["decisions"]), *figures)
    return table
