"""The effect of removing a word, and the few rows of a table where it differs clearly from the contribution."""

from dataclasses import replace

from lexical_sae.explanation import Explanation, WordContribution


def pieces_name(count: int) -> str:
    """What word pieces and symbols that are not listed are called together.

    Example: `1 -> "1 piece or symbol"`, `3 -> "3 pieces and symbols"`
    """
    return "1 piece or symbol" if count == 1 else f"{count} pieces and symbols"


MARK = "*"
SHARE, LEAST = 0.1, 0.01
"""The two differ clearly from this share of the larger on, if two decimals show it."""


def is_marked(word: WordContribution) -> bool:
    """Whether the effect of removal differs clearly from the contribution.

    Most removals switch a hidden unit somewhere, and nearly always it changes next to nothing. A mark on all of them
    would hide the few where it matters.

    Example: contribution 0.33, if removed -0.41 -> True; contribution 0.45, if removed -0.47 -> False
    """
    if word.if_removed is None:
        return False
    larger = max(abs(word.contribution), abs(word.if_removed))
    return abs(word.contribution + word.if_removed) > max(SHARE * larger, LEAST)


def effect(word: WordContribution) -> str:
    """The change of the sum if the word is removed, with its mark. Example: `-0.41*`"""
    return "–" if word.if_removed is None else f"{word.if_removed:+.2f}{MARK if is_marked(word) else ''}"


def changes_decision(word: WordContribution, explanation: Explanation) -> bool:
    """Whether the label is another without this word."""
    return word.label_if_removed not in (None, explanation.most_probable)


def notes_on_decision(explanation: Explanation) -> str:
    """Whether a single removal changes the decision, in a sentence; nothing where that was not computed."""
    # Removals are of single dimensions, whatever is shown together.
    listed = replace(explanation, merge_inflections=False).listed()
    unnamed = listed.pieces.label_changes if listed.pieces else None
    if unnamed is None and all(word.label_if_removed is None for word in listed.words):
        return ""
    changed = [word.word for word in listed.words if changes_decision(word, explanation)]
    changed += [f"any of {pieces_name(unnamed)}"] if unnamed else []
    if not changed:
        return "No single removal changes the decision."
    return f"The removal of one word alone changes the decision: {', '.join(changed)}."
