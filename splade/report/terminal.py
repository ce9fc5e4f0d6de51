"""Plain data in the terminal, in colour. Text from outside is shown, never interpreted."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from splade.explanation import Explanation, WordContribution

BAR_WIDTH = 24
FOR, AGAINST = "green", "red"


def shown(text: str) -> str:
    """A string from outside without what a terminal would act on: control characters become visible stand-ins."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def explanation_panel(explanation: Explanation, top: int = 8) -> Panel:
    """The text, its label, and the words that speak most for and against it."""
    title = Text.assemble((shown(explanation.label), "bold"), f"  {explanation.probability:.0%}")
    parts: list[RenderableType] = [Text(shown(explanation.text), style="italic")]
    if explanation.tokens_cut:
        parts.append(Text(f"({explanation.tokens_cut} tokens at the end were not read: too long)", style="yellow"))
    parts.append(_words_table(explanation, top))
    return Panel(Group(*parts), title=title, title_align="left", padding=(0, 1))


def _words_table(explanation: Explanation, top: int) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right")
    table.add_column()
    named, rest = explanation.words[:top], explanation.words[top:]
    longest = max((abs(word.contribution) for word in named), default=1.0) or 1.0
    for word in named:
        table.add_row(Text(shown(word.word)), f"{word.contribution:+.2f}", _bar(word, longest))
    if rest:
        total = sum(word.contribution for word in rest)
        table.add_row(Text(f"{len(rest)} other words", style="dim"), f"{total:+.2f}", "")
    table.add_row(Text("bias at this input", style="dim"), f"{explanation.bias:+.2f}", "")
    return table


def _bar(word: WordContribution, longest: float) -> Text:
    length = max(1, round(BAR_WIDTH * abs(word.contribution) / longest))
    return Text("█" * length, style=FOR if word.contribution > 0 else AGAINST)


def figures_table(title: str, rows: Sequence[tuple[str, str, str]]) -> Table:
    """Named figures with a remark each."""
    table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value, remark in rows:
        table.add_row(Text(name), Text(value, style="bold"), Text(remark, style="dim"))
    return table
