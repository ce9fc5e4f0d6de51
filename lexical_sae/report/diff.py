"""Two models beside each other in the terminal, from plain data as the `as_dict` of the comparison writes it."""

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from lexical_sae.report.explanation.removal import pieces_name
from lexical_sae.report.lexicon import Data, reach, words_table
from lexical_sae.report.printable import shown
from lexical_sae.report.tables import AnyCell, Cell, FigureTable, table_view
from lexical_sae.report.terminal import figures_table

WIDE = 58
"""Letters in a line from which on there is room for the figures before and after."""


def diff_view(diff: Data) -> Group:
    """What each class gained and lost, and the flips with the words behind them."""
    rows = [("flipped", str(diff["flipped"]), f"of {diff['texts']} texts")]
    if diff["only_before"] or diff["only_after"]:
        words = f"only the first has {diff['only_before']}, only the second {diff['only_after']}"
        rows.append(("vocabulary", "differs", f"{words}; matched by name"))
    if diff["accuracy"] is not None:
        found = diff["accuracy"]
        change = f"before {found['before']:.1%}; {found['fixed']} fixed, {found['broken']} broken"
        rows.append(("accuracy", f"{found['after']:.1%}", change))
    for was, counts in diff["flips_between"].items():
        rows += [("", str(count), f"from {shown(was)} to {shown(now)}") for now, count in counts.items()]
    parts: list[RenderableType] = [figures_table("The second model beside the first", rows)]
    parts += [table_view(_change_table(own)) for own in diff["classes"]]
    parts += [_flip_panel(flip) for flip in diff["flips"]]
    return Group(*parts)


def flips_view(diff: Data) -> Group:
    """The texts that get another label, and how many; for an edit, whose words are known already."""
    total = Text(f"{diff['flipped']} of {diff['texts']} texts get another label", style="bold")
    if diff["flipped"] > len(diff["flips"]):
        total.append(f"; the {len(diff['flips'])} with the greatest change:")
    rows = [
        (
            Cell(f"{flip['before']} → {flip['after']}", "strong"),
            flip["text"],
            Cell(", ".join(word["name"] for word in flip["words"][:3] if word["difference"] > 0), "quiet"),
        )
        for flip in diff["flips"]
    ]
    return Group(total, table_view(FigureTable("", ("", "", ""), rows, left=3))) if rows else Group(total)


def _change_table(own: Data) -> FigureTable:
    rows: list[tuple[AnyCell, ...]] = []
    for side, look in (("gained", "for"), ("lost", "against")):
        for word in own[side]:
            tone = "plain" if word["is_clear"] else "quiet"
            rows.append(
                (
                    Cell(word["name"], tone),
                    Cell(f"{word['difference']:+.3f}", look if word["is_clear"] else "quiet"),
                    Cell(reach(word["difference"], word["high"]), "quiet"),
                    Cell(f"{word['before']:+.3f}", tone),
                    Cell(f"{word['after']:+.3f}", tone),
                    Cell(str(word["count"]), tone),
                )
            )
    columns = ("word", "difference", "±", "before", "after", "texts")
    title = f"{own['label']}: {own['texts']} texts"
    return words_table(title, columns, rows, "no word changed", own["pieces"], narrow=(WIDE, 3))


def _flip_panel(flip: Data, top: int = 5) -> Panel:
    title = Text(f"{shown(flip['before'])} → {shown(flip['after'])}", style="bold")
    words = Table.grid(padding=(0, 1))
    for word in flip["words"][:top]:
        words.add_row(Text(shown(word["name"])), f"{word['before']:+.2f} → {word['after']:+.2f}")
    rest = flip["other_words"] + sum(word["difference"] for word in flip["words"][top:])
    words.add_row(Text("other words", style="dim"), f"{rest:+.2f}")
    if flip["pieces"] is not None:
        unnamed = flip["pieces"]
        words.add_row(Text(pieces_name(unnamed["count"]), style="dim"), f"{unnamed['contribution']:+.2f}")
    words.add_row(Text("bias", style="dim"), f"{flip['bias']:+.2f}")
    change = f"{flip['margin_before']:+.2f} → {flip['margin_after']:+.2f}"
    words.add_row(Text("margin of the new label", style="bold"), change)
    return Panel(Group(Text(shown(flip["text"]), style="italic"), words), title=title, title_align="left")
