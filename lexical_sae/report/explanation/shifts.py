"""What context does to the words of an explanation, for every view of it."""

from dataclasses import dataclass

from lexical_sae.explanation import Cause, Explanation, SpanContribution, WordContribution

REVERSED, STRONGER, WEAKER = "reversed", "stronger", "weaker"
MARKS = {REVERSED: "↺", STRONGER: "↑", WEAKER: "↓"}
"""Signs beside a shifted word: what happens to it is said without colour too."""


@dataclass(frozen=True)
class Shift:
    """What context makes of a word."""

    kind: str
    cause: Cause | None

    @property
    def mark(self) -> str:
        return MARKS[self.kind]

    @property
    def is_reversed(self) -> bool:
        return self.kind == REVERSED

    @property
    def text(self) -> str:
        """In words. Example: `reversed by “not”`"""
        return f"{self.kind} by “{self.cause.word}”" if self.cause else self.kind

    @property
    def sign(self) -> str:
        """What stands after the word in its text; of a reversed word the cause too. Example: `(↺ because of “not”)`"""
        return f"({self.mark} because of “{self.cause.word}”)" if self.cause and self.is_reversed else self.mark


def shift_of(word: WordContribution) -> Shift | None:
    """The shift of a word; None where it stays at its default."""
    if not word.context or word.default is None:
        return None
    is_larger = abs(word.contribution) > abs(word.default)
    kind = REVERSED if word.contribution * word.default < 0 else STRONGER if is_larger else WEAKER
    return Shift(kind, word.cause)


def shifts_by_place(explanation: Explanation) -> dict[tuple[int, int], Shift]:
    """The shifts of a text by the first character of the word and the one after its last."""
    found: dict[tuple[int, int], Shift] = {}
    # The strongest first, so that the first of two words in one place is the one to tell of.
    for word in explanation.words:
        shift = shift_of(word)
        if shift and word.start is not None and word.end is not None:
            found.setdefault((word.start, word.end), shift)
    return found


def place_of(span: SpanContribution) -> tuple[int, int]:
    return span.start, span.end
