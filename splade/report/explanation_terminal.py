"""An explanation in the terminal: the text with its telling words marked, and the words that sum to the decision."""

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from splade.explanation import Explanation, SpanContribution, WordContribution
from splade.report.by_width import ByWidth
from splade.report.explanation_steps import listing, question
from splade.report.printable import shown
from splade.report.removal import changes_decision, effect

BAR_WIDTH, SHORTEST_BAR = 20, 6
OTHER_COLUMNS = 56
"""Letters that the columns beside the bars take; bars get what is left, and none where it is too little."""
FOR, AGAINST = "green", "red"
ROOM_FOR_PLACES = 44
"""Letters in a line from which on there is room for the words of the text that words were read from."""
MARKED = 0.15
"""Words of the text are marked from this share of the strongest one's score on."""
NAMED_SPANS = 6


def explanation_panel(explanation: Explanation, top: int = 8, labelled: str | None = None) -> Panel:
    """The text, its label, and the words that speak most for and against it; `labelled` is the true label if known."""
    title = Text.assemble((shown(explanation.label), "bold"), f"  {shown(explanation.confidence)}")
    if labelled is not None and labelled != explanation.label:
        title.append(f"  (labelled {shown(labelled)})", style="yellow")
    parts: list[RenderableType] = [Text(f"⚠ {shown(line)}", style="bold yellow") for line in explanation.cautions]
    parts.append(highlighted_text(explanation))
    if explanation.contrast is not None or explanation.target != explanation.label:
        parts.append(Text(f"numbers speak {shown(question(explanation))}", style="yellow"))
    if explanation.spans:
        parts.append(_strongest_spans(explanation.spans, all_tokens=explanation.all_tokens))
    if listing(explanation, top).is_bias_alone:
        parts.append(Text("no word is active: this is the bias alone", style="yellow"))
    parts.append(ByWidth(lambda width: words_table(explanation, top, width)))
    parts += [Text(shown(line), style="dim") for line in explanation.not_explained]
    return Panel(Group(*parts), title=title, title_align="left", padding=(0, 1))


def highlighted_text(explanation: Explanation) -> Text:
    """The text; words that speak for the target bold, words against it underlined, and both in colour."""
    text = Text(style="italic")
    at = 0
    for span in _marked(explanation.spans or ()):
        text.append(shown(explanation.text[at : span.start]))
        look = f"bold {FOR}" if span.score > 0 else f"underline {AGAINST}"
        text.append(shown(explanation.text[span.start : span.end]), style=look)
        at = span.end
    return text.append(shown(explanation.text[at:]))


def _marked(spans: tuple[SpanContribution, ...]) -> list[SpanContribution]:
    strongest = max((abs(span.score) for span in spans), default=0.0)
    return [span for span in spans if span.score and abs(span.score) >= MARKED * strongest]


def _strongest_spans(spans: tuple[SpanContribution, ...], *, all_tokens: bool) -> Text:
    """The words of the text that contribute most; punctuation between them only with `all_tokens`."""
    listed = [span for span in _marked(spans) if all_tokens or any(map(str.isalnum, span.text))]
    strongest = sorted(listed, key=lambda span: -abs(span.score))[:NAMED_SPANS]
    named = [f"{shown(span.text)} {span.score:+.2f}" for span in strongest]
    return Text("in the text: " + (", ".join(named) or "no word speaks by itself"), style="dim")


def words_table(explanation: Explanation, top: int, width: int) -> Table:
    """The strongest words, the others by side, the bias, and the sum that is the decision."""
    listed = listing(explanation, top)
    named = listed.words
    has_defaults = any(word.default is not None for word in named)
    has_places = width >= ROOM_FOR_PLACES and any(word.is_expansion is not None for word in named) and not has_defaults
    # The effect of removing a word from a table is what the table says.
    has_effects = any(word.without is not None for word in named) and not has_defaults
    bar_width = min(BAR_WIDTH, width - OTHER_COLUMNS)
    has_bars = bar_width >= SHORTEST_BAR
    table = Table(box=None, padding=(0, 1), show_header=has_places or has_effects or has_defaults, header_style="dim")
    table.add_column("word", justify="right", overflow="fold", min_width=10)
    table.add_column("says", justify="right", no_wrap=True)
    if has_bars:
        table.add_column("", no_wrap=True)
    if has_places:
        table.add_column("read from", overflow="fold", min_width=4)
    if has_effects:
        table.add_column("without it", justify="left", overflow="fold", min_width=6)
    if has_defaults:
        table.add_column("default", justify="right", no_wrap=True)
        table.add_column("context", overflow="fold", min_width=8)
    longest = max((abs(word.contribution) for word in named), default=1.0) or 1.0
    for word in named:
        cells: list[RenderableType] = [Text(shown(word.word)), f"{word.contribution:+.2f}"]
        cells += [_bar(word, bar_width / longest)] if has_bars else []
        cells += [_read_from(explanation.text, word)] if has_places else []
        cells += [_without(explanation, word)] if has_effects else []
        cells += [f"{word.default:+.2f}", _context(word)] if word.default is not None else []
        table.add_row(*cells)
    for row in listed.rest:
        table.add_row(Text(row.name, style="dim"), f"{row.amount:+.2f}")
    table.add_row(Text("sum", style="bold"), Text(f"{explanation.explained:+.2f}", style="bold"))
    return table


def _bar(word: WordContribution, scale: float) -> Text:
    length = max(1, round(scale * abs(word.contribution)))
    return Text("█" * length, style=FOR if word.contribution > 0 else AGAINST)


def _read_from(text: str, word: WordContribution) -> Text:
    """The word of the text that it was read from; nothing where it is that word."""
    if word.start is None:
        return Text("the whole text", style="dim")
    return Text(shown(text[word.start : word.end]) if word.is_expansion else "", style="dim")


def _context(word: WordContribution) -> Text:
    """What context does to the word; nothing where it stays at its default."""
    if not word.context or word.default is None:
        return Text("")
    is_reversed = word.contribution * word.default < 0
    change = "reversed" if is_reversed else "stronger" if abs(word.contribution) > abs(word.default) else "weaker"
    return Text(f"{word.context:+.2f} {change}", style="bold yellow" if is_reversed else "yellow")


def _without(explanation: Explanation, word: WordContribution) -> Text:
    """How the sum changes without the word, and the label if it changes."""
    cell = Text(effect(word))
    if changes_decision(word, explanation):
        cell.append(f" {shown(str(word.label_without))}", style="bold yellow")
    return cell
