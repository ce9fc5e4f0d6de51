"""A model over a corpus in the terminal: the words of each class, its regions, and the page of one word.

Everything is shown from plain data, as the `as_dict` of the evaluation writes it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text

from lexical_sae.report.explanation.removal import pieces_name
from lexical_sae.report.printable import shown
from lexical_sae.report.tables import AnyCell, Cell, FigureTable, table_view
from lexical_sae.report.terminal import figures_table

Data = Mapping[str, Any]
COLUMNS = ("mean", "±", "texts", "activation", "weight", "spread", "same sign")
LEGEND = "mean contribution over the texts of the class, ± half its 95 % confidence interval; rare words are uncertain"
WIDE = 74
"""Letters in a line from which on there is room for how the weights vary."""


def survey_view(survey: Data, labels: Sequence[str] | None = None) -> Group:
    """The lexicon of every class (or of those named), how steady the weights are, and the regions."""
    parts: list[RenderableType] = []
    for own in survey["lexicon"]["classes"]:
        if labels is None or own["label"] in labels:
            parts.append(table_view(_class_table(own, survey["weights"].get(own["label"], {}))))
    parts.append(Text(LEGEND, "dim"))
    if survey["steadiness"]["words"]:
        parts.append(figures_table(*_steadiness_figures(survey["steadiness"])))
    if survey["atlas"] is not None:
        parts.append(_atlas_view(survey["atlas"], labels))
    return Group(*parts)


def _class_table(own: Data, weights: Mapping[str, Data]) -> FigureTable:
    rows = [
        _word_cells(word, weights.get(word["name"]), look)
        for side, look in (("contributes_to", "for"), ("contributes_against", "against"))
        for word in own[side]
    ]
    title = f"{own['label']}: {own['texts']} texts"
    nothing = "no word contributes to it or against it"
    return words_table(title, ("word", *COLUMNS), rows, nothing, own["pieces"], narrow=(WIDE, 4))


def words_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[AnyCell]],
    nothing: str,
    pieces: Data | None,
    narrow: tuple[int, int],
) -> FigureTable:
    """A table of words, with a last row for the word pieces and symbols that it leaves out, if there are any."""
    found: list[Sequence[AnyCell]] = [*rows] if rows else [(Cell(nothing, "notice"),)]
    if pieces is not None:
        found.append((Cell(pieces_name(pieces["count"]), "quiet"), Cell(f"{pieces['contribution']:+.3f}", "quiet")))
    full = [(*row, *("" for _ in columns[len(row) :])) for row in found]
    return FigureTable(title, columns, full, narrow=narrow)


def _word_cells(word: Data, weight: Data | None, look: str) -> tuple[AnyCell, ...]:
    tone = "quiet" if word["is_rare"] else "plain"
    cells = (
        Cell(word["name"] + (" (rare)" if word["is_rare"] else ""), tone),
        Cell(f"{word['contribution']:+.3f}", "quiet" if word["is_rare"] else look),
        Cell(reach(word["contribution"], word["high"]), "quiet"),
        Cell(f"{word['frequency']:.0%}", tone),
        Cell(f"{word['activation']:.2f}", tone),
    )
    if weight is None:
        return cells
    spread = Cell(f"{weight['spread']:.3f}", "quiet")
    return (*cells, Cell(f"{weight['mean']:+.3f}", tone), spread, Cell(f"{weight['same_sign']:.0%}", tone))


def reach(mean: float, high: float | None) -> str:
    """Half the width of a confidence interval."""
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
    pushes = [
        (
            label,
            Cell(f"{push['mean']:+.3f}", "for" if push["mean"] > 0 else "against"),
            Cell(reach(push["mean"], push["high"]), "quiet"),
        )
        for label, push in page["pushes"].items()
    ]
    if page["active_in"]:
        triggers = ", ".join(f"{shown(trigger['token'])} {trigger['share']:.0%}" for trigger in page["triggers"])
        contributions = FigureTable("", ("contributes to", "mean where active", "±"), pushes)
        parts += [table_view(contributions), Text.assemble("activated by: ", (triggers, "bold"))]
    parts += [_firing_line(firing) for firing in page["top_texts"]]
    return Panel(Group(*parts), title=Text(shown(page["name"]), style="bold"), title_align="left", padding=(0, 1))


def _firing_line(firing: Data) -> Text:
    """Activation, text with the trigger marked, and what was predicted."""
    start, end = firing["span"] or (0, 0)
    before, inside, after = firing["text"][:start], firing["text"][start:end], firing["text"][end:]
    return Text.assemble(
        (f"{firing['activation']:.2f} ", "bold"),
        shown(before),
        (shown(inside), "bold reverse"),
        shown(after),
        # Said again in words: where there is no colour, nothing is marked.
        (f"  | {shown(firing['trigger'])} → {shown(firing['predicted'])}", "dim"),
    )


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"
