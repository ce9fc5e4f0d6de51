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


def explanation_panel(explanation: Explanation, top: int = 8, labelled: str | None = None) -> Panel:
    """The text, its label, and the words that speak most for and against it; `labelled` is the true label if known."""
    title = Text.assemble((shown(explanation.label), "bold"), f"  {explanation.probability:.0%}")
    if labelled is not None and labelled != explanation.label:
        title.append(f"  (labelled {shown(labelled)})", style="yellow")
    parts: list[RenderableType] = [Text(shown(explanation.text), style="italic")]
    if explanation.tokens_cut:
        parts.append(Text(f"({explanation.tokens_cut} tokens at the end were not read: too long)", style="yellow"))
    if not explanation.words:
        parts.append(Text("no word is active: this is the bias alone", style="yellow"))
    parts.append(_words_table(explanation, top))
    return Panel(Group(*parts), title=title, title_align="left", padding=(0, 1))


def _words_table(explanation: Explanation, top: int) -> Table:
    """The strongest words, the others by side, the bias, and the sum that is the decision."""
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right")
    table.add_column()
    named, rest = explanation.words[:top], [word.contribution for word in explanation.words[top:]]
    longest = max((abs(word.contribution) for word in named), default=1.0) or 1.0
    for word in named:
        table.add_row(Text(shown(word.word)), f"{word.contribution:+.2f}", _bar(word, longest))
    for side, values in (("for", [v for v in rest if v > 0]), ("against", [v for v in rest if v <= 0])):
        if values:
            table.add_row(Text(f"{len(values)} other words {side}", style="dim"), f"{sum(values):+.2f}", "")
    table.add_row(Text("bias at this input", style="dim"), f"{explanation.bias:+.2f}", "")
    total = sum(word.contribution for word in explanation.words) + explanation.bias
    table.add_row(Text("sum", style="bold"), Text(f"{total:+.2f}", style="bold"), "")
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
