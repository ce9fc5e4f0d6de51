"""An explanation in the terminal: the text with its top words marked, and the words that sum to the decision."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from lexical_sae.explanation import Explanation, SpanContribution, WordContribution
from lexical_sae.report.explanation.removal import changes_decision, effect
from lexical_sae.report.explanation.shifts import place_of, shift_of, shifts_by_place
from lexical_sae.report.explanation.steps import listing, question
from lexical_sae.report.explanation.written import as_written
from lexical_sae.report.printable import shown, with_short_words


@dataclass(frozen=True)
class ByWidth:
    """Made when the number of letters in a line is known, so that narrow terminals get fewer columns and not cut ones.

    Example: `ByWidth(lambda width: "long version" if width > 40 else "short")`
    """

    make: Callable[[int], RenderableType]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:  # noqa: ARG002
        yield self.make(options.max_width)


BAR_WIDTH, SHORTEST_BAR = 20, 6
OTHER_COLUMNS, LITERAL_COLUMNS = 62, 72
"""Characters that the columns beside the bars take; bars get what is left, and none where it is too little."""
FOR, AGAINST = "green", "red"
ROOM_FOR_PLACES = 44
"""Characters in a line from which on there is room for the words of the text that words were activated by."""
MARKED = 0.15
"""Words of the text are marked from this share of the strongest one's score on."""
NAMED_SPANS = 6


def explanation_panel(explanation: Explanation, top: int = 8, labelled: str | None = None) -> Panel:
    """The text, its label, and the words that contribute most; `labelled` is the true label if known."""
    title = Text.assemble((shown(explanation.label), "bold"), f"  {shown(explanation.confidence)}")
    if labelled is not None and labelled != explanation.label:
        title.append(f"  (labelled {shown(labelled)})", style="yellow")
    parts: list[RenderableType] = [Text(f"⚠ {shown(line)}", style="bold yellow") for line in explanation.cautions]
    parts.append(highlighted_text(explanation))
    if explanation.contrast is not None or explanation.target != explanation.label:
        parts.append(Text(f"contributions {shown(question(explanation))}", style="yellow"))
    # A literal word contributes at its place what the table below shows.
    if explanation.spans and explanation.words and not explanation.has_defaults:
        parts.append(_strongest_spans(explanation.spans, all_tokens=explanation.all_tokens))
    if listing(explanation, top).is_bias_alone and not explanation.cautions:
        parts.append(Text("no word is active: this is the bias alone", style="yellow"))
    parts.append(ByWidth(lambda width: words_table(explanation, top, width)))
    parts += [Text(shown(line), style="dim") for line in explanation.not_explained]
    return Panel(Group(*parts), title=title, title_align="left", padding=(0, 1))


def highlighted_text(explanation: Explanation) -> Text:
    """The text; words that contribute to the target bold, words against it underlined, and both in colour.

    Shifted words have a sign after them; a reversed one is struck through, and its cause is named.
    """
    text = Text(style="italic")
    shifts = shifts_by_place(explanation)
    least, at = _least_score(explanation.spans or ()), 0
    for span in explanation.spans or ():
        shift = shifts.get(place_of(span))
        if not shift and abs(span.score) < least:
            continue
        text.append(shown(with_short_words(explanation.text[at : span.start])))
        look = f"bold {FOR}" if span.score > 0 else f"underline {AGAINST}"
        written = shown(with_short_words(explanation.text[span.start : span.end]))
        text.append(written, style=f"{look} strike" if shift and shift.is_reversed else look)
        if shift:
            text.append(f" {shown(shift.sign)}", style="yellow")
        at = span.end
    return text.append(shown(with_short_words(explanation.text[at:])))


def _least_score(spans: tuple[SpanContribution, ...]) -> float:
    """The smallest |score| that is marked; infinite where no word of the text contributes."""
    return MARKED * max((abs(span.score) for span in spans), default=0.0) or math.inf


def _strongest_spans(spans: tuple[SpanContribution, ...], *, all_tokens: bool) -> Text:
    """The words of the text that contribute most; punctuation between them only with `all_tokens`."""
    marked = [span for span in spans if abs(span.score) >= _least_score(spans)]
    listed = [span for span in marked if all_tokens or any(map(str.isalnum, span.text))]
    strongest = sorted(listed, key=lambda span: -abs(span.score))[:NAMED_SPANS]
    named = [f"{shown(span.text)} {span.score:+.2f}" for span in strongest]
    return Text("in the text: " + (", ".join(named) or "no single word contributes"), style="dim")


@dataclass(frozen=True)
class _Column:
    """A column of the table of words."""

    name: str
    cell: Callable[[WordContribution], RenderableType]
    look: Mapping[str, Any]


def words_table(explanation: Explanation, top: int, width: int) -> Table:
    """The strongest words, the others by side, the bias, and the sum that is the decision."""
    listed = listing(explanation, top)
    contribution, *others = _columns(explanation, listed.words, width)
    table = Table(box=None, padding=(0, 1), show_header=any(column.name for column in others), header_style="dim")
    table.add_column("word", justify="right", overflow="fold", min_width=10)
    for column in (contribution, *others):
        table.add_column(column.name, **column.look)
    for word in listed.words:
        name = shown(as_written(word, explanation.text))
        table.add_row(Text(name), *(column.cell(word) for column in (contribution, *others)))
    for row in listed.rest:
        table.add_row(Text(row.name, style="dim"), f"{row.amount:+.2f}")
    table.add_row(Text("sum", style="bold"), Text(f"{explanation.explained:+.2f}", style="bold"))
    return table


def _columns(explanation: Explanation, named: Sequence[WordContribution], width: int) -> Iterator[_Column]:
    """The columns after the word: its contribution, a bar where there is room, and what else is known."""
    look = {"justify": "right", "no_wrap": True}
    yield _Column("contribution", lambda word: f"{word.contribution:+.2f}", look)
    bar_width = min(BAR_WIDTH, width - (LITERAL_COLUMNS if explanation.has_shifts else OTHER_COLUMNS))
    if bar_width >= SHORTEST_BAR:
        longest = max((abs(word.contribution) for word in named), default=1.0) or 1.0
        yield _Column("", lambda word: _bar(word, bar_width / longest), {"no_wrap": True})
    if explanation.has_defaults:
        # Removing a word from a table takes away its contribution, and a literal word is activated by itself.
        if explanation.has_shifts and width >= ROOM_FOR_PLACES:
            yield _Column("default", lambda word: f"{word.default:+.2f}", look)
        if explanation.has_shifts:
            yield _Column("context", _context, {"overflow": "fold", "min_width": 8})
        return
    if width >= ROOM_FOR_PLACES and any(word.is_expansion is not None for word in named):
        activated_by = partial(_activated_by, explanation.text)
        yield _Column("activated by", activated_by, {"overflow": "fold", "min_width": 4})
    if any(word.if_removed is not None for word in named):
        yield _Column("if removed", partial(_if_removed, explanation), {"overflow": "fold", "min_width": 6})


def _bar(word: WordContribution, scale: float) -> Text:
    length = max(1, round(scale * abs(word.contribution)))
    return Text("█" * length, style=FOR if word.contribution > 0 else AGAINST)


def _activated_by(text: str, word: WordContribution) -> Text:
    """The word of the text that activated it; nothing where it is that word."""
    if word.start is None:
        return Text("the whole text", style="dim")
    return Text(shown(text[word.start : word.end]) if word.is_expansion else "", style="dim")


def _context(word: WordContribution) -> Text:
    """What context does to the word and by which word; nothing where it stays at its default."""
    shift = shift_of(word)
    if shift is None:
        return Text("")
    return Text(shown(f"{word.context:+.2f} {shift.text}"), style="bold yellow" if shift.is_reversed else "yellow")


def _if_removed(explanation: Explanation, word: WordContribution) -> Text:
    """How the sum changes without the word, and the label if it changes."""
    cell = Text(effect(word))
    if changes_decision(word, explanation):
        cell.append(f" {shown(str(word.label_if_removed))}", style="bold yellow")
    return cell
