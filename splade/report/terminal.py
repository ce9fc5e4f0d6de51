"""Plain data in the terminal, in colour. Text from outside is shown, never interpreted."""

from collections.abc import Sequence
from typing import Any

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


def score_figures(run: dict[str, Any]) -> tuple[str, list[tuple[str, str, str]]]:
    """Heading and rows of the table for one seed's results."""
    test = run["test"]
    rows = [
        ("accuracy", f"{test['accuracy']:.1%}", f"always naming the commonest label: {test['majority']:.1%}"),
        ("active words", f"{test['active_words']:.0f}", "per text"),
        ("identity error", f"{test['identity_error']:.0e}", "contributions and bias sum to the logit"),
    ]
    if test["texts_cut"]:
        rows.append(("texts cut", str(test["texts_cut"]), "longer than the model reads (model.max_length)"))
    return f"On {test['texts']} texts it has never seen (seed {run['seed']})", rows


def mean_figures(results: dict[str, Any]) -> tuple[str, list[tuple[str, str, str]]]:
    """Heading and rows of the table over seeds."""
    accuracy, active = results["mean"]["accuracy"], results["mean"]["active_words"]
    rows = [
        ("accuracy", f"{accuracy['mean']:.1%}", f"95 % interval {accuracy['low']:.1%} to {accuracy['high']:.1%}"),
        ("active words", f"{active['mean']:.0f}", f"95 % interval {active['low']:.0f} to {active['high']:.0f}"),
    ]
    return f"Mean of {accuracy['count']} seeds", rows


def baseline_figures(found: dict[str, Any]) -> tuple[str, list[tuple[str, str, str]]]:
    """Heading and rows of the table of yardsticks; the difference is the model's accuracy minus the yardstick's."""
    rows = []
    if "model" in found:
        rows.append(("this model", f"{found['model']['accuracy']:.1%}", ""))
    for name, baseline in found["baselines"].items():
        difference = found.get("difference", {}).get(name)
        note = f"chosen on validation: {baseline['setting']}"
        if difference:
            note += f"; model {difference['mean']:+.1%} ({difference['low']:+.1%} to {difference['high']:+.1%})"
        rows.append((name, f"{baseline['accuracy']:.1%}", note))
    return f"On {found['test_texts']} test texts", rows


def name_figures(title: str, scores: dict[str, Any]) -> tuple[str, list[tuple[str, str, str]]]:
    """Heading and rows of the table of name scores, each beside its control."""
    delete, follow = scores["delete"], scores["follow"]
    rows = [
        ("delete test", _share(delete["passed"]), f"other word deleted: {_share(delete['shuffled'])}"),
        ("follow test", _share(follow["passed"]), f"other word swapped: {_share(follow['shuffled'])}"),
        ("own words", _share(scores["own_words"]), "of the contributions, on words of the text"),
        ("neighbourhood", _share(scores["neighbourhood"]), f"by chance: {_share(scores['neighbourhood_chance'])}"),
        ("function words", _share(scores["function_words"]), "of the contributions"),
        ("word pieces", _share(scores["word_pieces"]), "of the contributions"),
        ("sign stability", _share(scores["sign_stability"]), "hardly discriminates"),
    ]
    return f"Names of the {title}, {scores['texts']} texts, {scores['active_words']:.0f} active words", rows


def _share(rate: dict[str, Any]) -> str:
    return "–" if rate["share"] is None else f"{rate['share']:.1%}"


def strongest_words_table(strongest: dict[str, list[dict[str, Any]]]) -> Table:
    """The words that speak most for each class."""
    table = Table("class", "strongest words, by mean contribution", show_lines=True)
    for name, words in strongest.items():
        table.add_row(Text(shown(name)), Text(shown(", ".join(word["name"] for word in words))))
    return table
