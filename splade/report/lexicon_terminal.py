"""A model over a corpus, and two models beside each other, in the terminal.

Everything is shown from plain data, as the `as_dict` of the evaluation writes it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from splade.report.explanation_terminal import AGAINST, FOR
from splade.report.printable import shown
from splade.report.terminal import figures_table

Data = Mapping[str, Any]
CLEAR, UNCLEAR = "", "dim"


def survey_view(survey: Data, labels: Sequence[str] | None = None) -> Group:
    """The lexicon of every class (or of those named), how steady the weights are, and the regions."""
    parts: list[RenderableType] = []
    for own in survey["lexicon"]["classes"]:
        if labels is None or own["label"] in labels:
            parts.append(_class_table(own, survey["weights"].get(own["label"], {})))
    parts.append(Text("± is half the 95 % interval of the mean; words in grey are rare, trust them little", "dim"))
    parts.append(figures_table(*_steadiness_figures(survey["steadiness"])))
    if survey["atlas"] is not None:
        parts.append(_atlas_view(survey["atlas"], labels))
    return Group(*parts)


def _class_table(own: Data, weights: Mapping[str, Data]) -> Table:
    title = f"{shown(own['label'])}: {own['texts']} texts"
    table = Table(title=Text(title, style="bold"), title_justify="left", box=None, padding=(0, 2, 0, 0))
    table.add_column("word")
    for column in ("contribution", "±", "texts", "strength", "weight", "spread", "same sign"):
        table.add_column(column, justify="right")
    for side, style in (("speaks_for", FOR), ("speaks_against", AGAINST)):
        for word in own[side]:
            table.add_row(*_word_cells(word, weights.get(word["name"]), style))
    if not table.row_count:
        table.add_row(Text("no word speaks for or against it", style="yellow"))
    return table


def _word_cells(word: Data, weight: Data | None, style: str) -> Iterator[Text]:
    tone = UNCLEAR if word["is_rare"] else CLEAR
    yield Text(shown(word["name"]), style=tone)
    yield Text(f"{word['contribution']:+.3f}", style=UNCLEAR if word["is_rare"] else style)
    yield Text(_reach(word["contribution"], word["high"]), style="dim")
    yield Text(f"{word['frequency']:.0%}", style=tone)
    yield Text(f"{word['strength']:.2f}", style=tone)
    if weight is not None:
        yield Text(f"{weight['mean']:+.3f}", style=tone)
        yield Text(f"{weight['spread']:.3f}", style="dim")
        yield Text(f"{weight['same_sign']:.0%}", style=tone)


def _reach(mean: float, high: float | None) -> str:
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
    table = Table("group", "texts", "regions", "decides alike", "margin R²", "label", "words", box=None)
    for number, group in enumerate(atlas["groups"], 1):
        figures = [str(number), f"{group['share']:.0%}", str(group["regions"]), f"{group['agreement']:.1%}"]
        figures.append("–" if group["margin_r2"] is None else f"{group['margin_r2']:.2f}")
        for label, words in group["words"].items():
            if labels is None or label in labels:
                listed = ", ".join(f"{word['name']} {word['weight']:+.2f}" for word in words)
                table.add_row(*figures, Text(shown(label)), Text(shown(listed)))
                figures = [""] * len(figures)
    return Group(figures_table("Regions: linear models that the model is made of", rows), table)


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
        pushes.add_row(Text(shown(label)), value, Text(_reach(push["mean"], push["high"]), style="dim"))
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
    parts += [_change_table(own) for own in diff["classes"]]
    parts += [_flip_panel(flip) for flip in diff["flips"]]
    return Group(*parts)


def _change_table(own: Data) -> Table:
    title = f"{shown(own['label'])}: {own['texts']} texts"
    table = Table(title=Text(title, style="bold"), title_justify="left", box=None, padding=(0, 2, 0, 0))
    table.add_column("word")
    for column in ("before", "after", "difference", "±", "texts"):
        table.add_column(column, justify="right")
    for side, style in (("gained", FOR), ("lost", AGAINST)):
        for word in own[side]:
            tone = CLEAR if word["is_clear"] else UNCLEAR
            table.add_row(
                Text(shown(word["name"]), style=tone),
                Text(f"{word['before']:+.3f}", style=tone),
                Text(f"{word['after']:+.3f}", style=tone),
                Text(f"{word['difference']:+.3f}", style=style if word["is_clear"] else UNCLEAR),
                Text(_reach(word["difference"], word["high"]), style="dim"),
                Text(str(word["count"]), style=tone),
            )
    if not table.row_count:
        table.add_row(Text("no word changed", style="yellow"))
    return table


def _flip_panel(flip: Data, top: int = 5) -> Panel:
    title = Text(f"{shown(flip['before'])} → {shown(flip['after'])}", style="bold")
    words = Table.grid(padding=(0, 1))
    for word in flip["words"][:top]:
        words.add_row(Text(shown(word["name"])), f"{word['before']:+.2f} → {word['after']:+.2f}")
    rest = flip["other_words"] + sum(word["difference"] for word in flip["words"][top:])
    words.add_row(Text("other words", style="dim"), f"{rest:+.2f}")
    words.add_row(Text("bias", style="dim"), f"{flip['bias']:+.2f}")
    change = f"{flip['margin_before']:+.2f} → {flip['margin_after']:+.2f}"
    words.add_row(Text("margin of the new label", style="bold"), change)
    return Panel(Group(Text(shown(flip["text"]), style="italic"), words), title=title, title_align="left")


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"
