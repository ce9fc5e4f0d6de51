"""`Reasons`: the fewest words that a decision hangs on, as plain frozen data."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class WordSet:
    """A set of active words, and what is proved about its size."""

    words: tuple[str, ...] | None
    """The smallest set that was found; None if none was."""
    label: str | None
    """The label that this choice of words leaves."""
    at_least: int
    """No set of fewer words will do: proved."""
    is_minimal: bool
    """Whether it is proved that no smaller set will do."""
    is_impossible: bool
    """Whether it is proved that no set will do."""
    pieces: tuple[str, ...] = ()
    """Those of `words` that are word pieces or symbols."""


@dataclass(frozen=True)
class Reasons:
    """The fewest words that a decision hangs on, and the fewest that are enough for it."""

    text: str
    label: str
    probability: float
    num_words: int
    """Active words of the text."""
    tokens_cut: int
    to: str | None
    """The label that the decision was to change to; None for any other."""
    flip: WordSet
    """Words whose removal changes the decision."""
    enough: WordSet
    """Words that give the decision when all others are removed."""
    all_tokens: bool = False
    """Whether views and JSON name word pieces and symbols; by default they count them."""

    def listed(self, found: WordSet) -> tuple[tuple[str, ...], int]:
        """The words of a set that views and JSON name, and how many word pieces and symbols they only count."""
        words = found.words or ()
        if self.all_tokens:
            return words, 0
        return tuple(word for word in words if word not in found.pieces), len(found.pieces)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON; `pieces` is how many words of a set are not named."""
        fields = asdict(self)
        for name in ("flip", "enough"):
            words, count = self.listed(getattr(self, name))
            fields[name] |= {"words": None if fields[name]["words"] is None else words, "pieces": count}
        return fields
