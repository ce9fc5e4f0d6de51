"""A model over a corpus in the terminal: the words of each class, its regions, and the page of one word.

Everything is shown from plain data, as the `as_dict` of the evaluation writes it.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from splade.report.by_width import ByWidth
from splade.report.explanation_terminal import AGAINST, FOR
from splade.report.pieces import pieces_name
from splade.report.printable import shown
from splade.report.terminal import figures_table

Data = Mapping[str, Any]
CLEAR, UNCLEAR = "", "dim"
COLUMNS = ("mean", "±", "texts", "strength", "weight", "spread", "same sign")
LEGEND = "mean contribution over the texts of the class, ± half its 95 % interval; trust rare words little"
WIDE = 74
"""Letters in a line from which on there is room for how the weights vary."""


def survey_view(survey: Data, labels: Sequence[str] | None = None) -> Group:
    """The lexicon of every class (or of those named), how steady the weights are, and the regions."""
    parts: list[RenderableType] = []
    for own in survey["lexicon"]["classes"]:
        if labels is None or own["label"] in labels:
            parts.append(ByWidth(partial(_class_table, own, survey["weights"].get(own["label"], {}))))
    parts.append(
        Text("mean contribution over the texts of the class, ± half its 95 % interval; trust rare words little", "dim")
    )
    if survey["steadiness"]["words"]:
        parts.append(figures_table(*_steadiness_figures(survey["steadiness"])))
    if survey["atlas"] is not None:
        parts.append(_atlas_view(survey["atlas"], labels))
    return Group(*parts)


def _class_table(own: Data, weights: Mapping[str, Data], width: int) -> Table:
    title = f"{shown(own['label'])}: {own['texts']} texts"
    table = Table(title=Text(title, style="bold"), title_justify="left", box=None, padding=(0, 2, 0, 0))
    table.add_column("word", overflow="fold")
    for column in COLUMNS if width >= WIDE else COLUMNS[:3]:
        table.add_column(column, justify="right")
    for side, style in (("speaks_for", FOR), ("speaks_against", AGAINST)):
        for word in own[side]:
            cells = _word_cells(word, weights.get(word["name"]), style)
            table.add_row(*islice(cells, len(table.columns)))
    if not table.row_count:
        table.add_row(Text("no word speaks for or against it", style="yellow"))
    add_pieces(table, own["pieces"])
    return table


def add_pieces(table: Table, pieces: Data | None) -> None:
    """A last row for word pieces and symbols, if there are any that the table leaves out."""
    if pieces is not None:
        table.add_row(Text(pieces_name(pieces["count"]), style="dim"), Text(f"{pieces['contribution']:+.3f}", "dim"))


def _word_cells(word: Data, weight: Data | None, style: str) -> Iterator[Text]:
    tone = UNCLEAR if word["is_rare"] else CLEAR
    yield Text(shown(word["name"]) + (" (rare)" if word["is_rare"] else ""), style=tone)
    yield Text(f"{word['contribution']:+.3f}", style=UNCLEAR if word["is_rare"] else style)
    yield Text(reach(word["contribution"], word["high"]), style="dim")
    yield Text(f"{word['frequency']:.0%}", style=tone)
    yield Text(f"{word['strength']:.2f}", style=tone)
    if weight is not None:
        yield Text(f"{weight['mean']:+.3f}", style=tone)
        yield Text(f"{weight['spread']:.3f}", style="dim")
        yield Text(f"{weight['same_sign']:.0%}", style=tone)


def reach(mean: float, high: float | None) -> str:
    return "–" if high is None else f"{high - mean:.3f}"


def _steadiness_figures(steadiness: Data) -> tuple[str, list[tuple[str, str, str]]]:
    rows = [
        ("same sign", _share(steadiness["same_sign"]), "of the texts, a word's weight has its usual sign"),
        ("spread", _share(steadiness["relative_spread"]), "of the weights' size; 0 % for a linear model"),
    ]
    return f"How steady the weights of {steadiness['words']} words are", rows


def _atlas_view(atlas: Data, labels: Sequence[str] | None) -> Group:
    rows = [
        ("hidden units", str(len(atlas["switching"])), f"switch; {atlas['always_on']} always on, "
         f"{atlas['always_off']} always off"),
        ("regions", str(atlas["regions"]), f"in a sample of {atlas['sampled']} of {atlas['texts']} texts"),
        ("groups", str(len(atlas["groups"])), f"cover {atlas['coverage']:.0%}; linear models decide alike in "
         f"{atlas['agreement']:.1%}"),
    ]  # fmt: skip
    parts: list[RenderableType] = [figures_table("Regions: linear models that the model is made of", rows)]
    for number, group in enumerate(atlas["groups"], 1):
        margin = "–" if group["margin_r2"] is None else f"{group['margin_r2']:.2f}"
        told = f"{group['share']:.0%} of the texts, regions {group['regions']}, decides alike {group['agreement']:.1%}"
        parts.append(Text.assemble((f"group {number}: ", "bold"), f"{told}, margin R² {margin}"))
        for label, words in group["words"].items():
            if words and (labels is None or label in labels):
                listed = ", ".join(f"{word['name']} {word['weight']:+.2f}" for word in words)
                parts.append(Padding(Text(shown(f"{label}: {listed}")), (0, 0, 0, 2)))
    return Group(*parts)


def feature_panel(page: Data) -> Panel:
    """The page of one word."""
    rows = [
        ("active", f"{page['active_in']}", f"of {page['texts']} texts"),
        ("written", f"{page['written_in']}", f"texts have the word; it is active in {page['active_where_written']}"),
    ]
    parts: list[RenderableType] = [figures_table("", rows)]
    pushes = Table("speaks for", "mean where active", "±", box=None)
    for label, push in page["pushes"].items():
        value = Text(f"{push['mean']:+.3f}", style=FOR if push["mean"] > 0 else AGAINST)
        pushes.add_row(Text(shown(label)), value, Text(reach(push["mean"], push["high"]), style="dim"))
    if page["active_in"]:
        triggers = ", ".join(f"{shown(trigger['token'])} {trigger['share']:.0%}" for trigger in page["triggers"])
        parts += [pushes, Text.assemble("set off by: ", (triggers, "bold"))]
    parts += [_firing_line(firing) for firing in page["top_texts"]]
    return Panel(Group(*parts), title=Text(shown(page["name"]), style="bold"), title_align="left", padding=(0, 1))


def _firing_line(firing: Data) -> Text:
    """Strength, text with the trigger marked, and what was predicted."""
    start, end = firing["span"] or (0, 0)
    before, inside, after = firing["text"][:start], firing["text"][start:end], firing["text"][end:]
    return Text.assemble(
        (f"{firing['strength']:.2f} ", "bold"),
        shown(before),
        (shown(inside), "bold reverse"),
        shown(after),
        # Said again in words: where there is no colour, nothing is marked.
        (f"  | {shown(firing['trigger'])} → {shown(firing['predicted'])}", "dim"),
    )


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"
