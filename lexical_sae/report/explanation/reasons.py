"""What a decision hangs on, in the terminal."""

from rich.console import Group
from rich.panel import Panel
from rich.text import Text

from lexical_sae.explanation import Reasons, WordSet
from lexical_sae.report.explanation.removal import pieces_name
from lexical_sae.report.printable import shown


def reasons_panel(reasons: Reasons) -> Panel:
    """The smallest flip and the smallest sufficient set, each with what is proved about it."""
    title = Text.assemble((shown(reasons.label), "bold"), f"  {reasons.probability:.0%}")
    parts = [Text(shown(reasons.text), style="italic")]
    if reasons.tokens_cut:
        parts.append(Text(f"({reasons.tokens_cut} tokens at the end were not read: too long)", style="yellow"))
    parts.append(Text(f"{_counted(reasons.num_words, 'active word')}", style="dim"))
    parts += [_flip(reasons), _enough(reasons)]
    return Panel(Group(*parts), title=title, title_align="left", padding=(0, 1))


def _flip(reasons: Reasons) -> Text:
    goal = f"make it {shown(reasons.to)}" if reasons.to else "change the decision"
    found = reasons.flip
    if found.is_impossible:
        return Text(f"No removal of words can {goal}: proved for every combination of them.")
    if found.words is None:
        return Text(f"No removal was found to {goal}; fewer than {_counted(found.at_least, 'word')} cannot: proved.")
    return Text.assemble(
        f"Without {_counted(len(found.words), 'word')} it is ",
        (shown(str(found.label)), "bold"),
        ": ",
        _listed(reasons, found),
        f"\n  {_proof(found)}",
    )


def _enough(reasons: Reasons) -> Text:
    found = reasons.enough
    if found.words is None:
        return Text("No smaller set of words was found that is enough for the decision.")
    if not found.words:
        return Text(f"With no word at all it is {shown(reasons.label)} too: the biases are enough.")
    return Text.assemble(
        f"{_counted(len(found.words), 'word')} alone {'is' if len(found.words) == 1 else 'are'} enough for it: ",
        _listed(reasons, found),
        f"\n  {_proof(found)}",
    )


def _proof(found: WordSet) -> str:
    if found.is_minimal:
        return "No smaller set of words does it: proved."
    return f"The search was stopped. Fewer than {_counted(found.at_least, 'word')} cannot do it: proved."


def _listed(reasons: Reasons, found: WordSet) -> tuple[str, str]:
    words, unnamed = reasons.listed(found)
    return shown(", ".join([*words, *([pieces_name(unnamed)] if unnamed else [])])), "bold"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
