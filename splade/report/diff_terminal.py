"""Two models beside each other in the terminal, from plain data as the `as_dict` of the comparison writes it."""

from functools import partial

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from splade.report.by_width import ByWidth
from splade.report.explanation_terminal import AGAINST, FOR
from splade.report.lexicon_terminal import CLEAR, UNCLEAR, Data, add_pieces, reach
from splade.report.pieces import pieces_name
from splade.report.printable import shown
from splade.report.terminal import figures_table

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
    parts += [ByWidth(partial(_change_table, own)) for own in diff["classes"]]
    parts += [_flip_panel(flip) for flip in diff["flips"]]
    return Group(*parts)


def flips_view(diff: Data) -> Group:
    """The texts that get another label, and how many; for an edit, whose words are known already."""
    total = Text(f"{diff['flipped']} of {diff['texts']} texts get another label", style="bold")
    if diff["flipped"] > len(diff["flips"]):
        total.append(f"; the {len(diff['flips'])} with the greatest change:")
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for flip in diff["flips"]:
        words = ", ".join(shown(word["name"]) for word in flip["words"][:3] if word["difference"] > 0)
        labels = Text(f"{shown(flip['before'])} → {shown(flip['after'])}", style="bold")
        table.add_row(labels, Text(shown(flip["text"])), Text(words, style="dim"))
    return Group(total, table) if diff["flips"] else Group(total)


def _change_table(own: Data, width: int) -> Table:
    title = f"{shown(own['label'])}: {own['texts']} texts"
    table = Table(title=Text(title, style="bold"), title_justify="left", box=None, padding=(0, 2, 0, 0))
    table.add_column("word", overflow="fold")
    for column in ("difference", "±", "before", "after", "texts")[: 5 if width >= WIDE else 2]:
        table.add_column(column, justify="right")
    for side, style in (("gained", FOR), ("lost", AGAINST)):
        for word in own[side]:
            tone = CLEAR if word["is_clear"] else UNCLEAR
            cells = [
                Text(shown(word["name"]), style=tone),
                Text(f"{word['difference']:+.3f}", style=style if word["is_clear"] else UNCLEAR),
                Text(reach(word["difference"], word["high"]), style="dim"),
                Text(f"{word['before']:+.3f}", style=tone),
                Text(f"{word['after']:+.3f}", style=tone),
                Text(str(word["count"]), style=tone),
            ]
            table.add_row(*cells[: len(table.columns)])
    if not table.row_count:
        table.add_row(Text("no word changed", style="yellow"))
    add_pieces(table, own["pieces"])
    return table


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
