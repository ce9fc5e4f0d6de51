"""Where removing a word does something else than the word says: the few rows of a table that deserve a mark."""

from dataclasses import replace

from splade.explanation import Explanation, WordContribution
from splade.report.pieces import pieces_name

MARK = "*"
SHARE, LEAST = 0.1, 0.01
"""The two differ clearly from this share of the larger on, if two decimals show it."""


def is_marked(word: WordContribution) -> bool:
    """Whether removing the word takes away clearly more or less than it says.

    Most removals switch a hidden unit somewhere, and nearly always it changes next to nothing. A mark on all of them
    would hide the few where it matters.

    Example: says 0.33 and takes away 0.41 -> True; says 0.45 and takes away 0.47 -> False
    """
    if word.without is None:
        return False
    larger = max(abs(word.contribution), abs(word.without))
    return abs(word.contribution - word.without) > max(SHARE * larger, LEAST)


def effect(word: WordContribution) -> str:
    """How the sum changes without the word, with its mark. Example: `-0.41*`"""
    return "–" if word.without is None else f"{-word.without:+.2f}{MARK if is_marked(word) else ''}"


def changes_decision(word: WordContribution, explanation: Explanation) -> bool:
    """Whether the label is another without this word."""
    return word.label_without not in (None, explanation.most_probable)


def told_of_decision(explanation: Explanation) -> str:
    """Whether the decision hangs on a single word, in a sentence; nothing where that was not asked for."""
    # Removals are of single dimensions, whatever is shown together.
    listed = replace(explanation, merge_inflections=False).listed()
    unnamed = listed.pieces.label_changes if listed.pieces else None
    if unnamed is None and all(word.label_without is None for word in listed.words):
        return ""
    changed = [word.word for word in listed.words if changes_decision(word, explanation)]
    changed += [f"any of {pieces_name(unnamed)}"] if unnamed else []
    if not changed:
        return "No single removal changes the decision."
    return f"The removal of one word alone changes the decision: {', '.join(changed)}."
