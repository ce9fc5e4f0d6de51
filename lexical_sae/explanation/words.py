"""The words of an explanation, alone, merged or summed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pydantic import ConfigDict

from lexical_sae.data.language import grouped_forms, joined_forms

PIECE = "piece"
"""Kind of a dimension that is no whole word."""
WORD = "word"
"""Kind of a dimension that is one."""
STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


@dataclass(frozen=True)
class Cause:
    """The word of the text that causes a shift by context: measured by masking it, not proved."""

    __pydantic_config__: ClassVar = STRICT

    word: str
    """As it is written in the text."""
    start: int
    end: int
    """One after the last character."""
    share: float
    """Share of the context part that goes when this word alone is masked."""


@dataclass(frozen=True)
class WordContribution:
    """One active word and its contribution."""

    __pydantic_config__: ClassVar = STRICT

    word: str
    kind: str
    """What the dimension is: a word, a sense of a word, a shape feature, or a piece (a token that is no whole word)."""
    activation: float
    """How active the word is in this text."""
    contribution: float
    """Its contribution to what is explained, by the method of the explanation."""
    start: int | None = None
    """First character of the word of the text that activated it; None where no single word did."""
    end: int | None = None
    """One after the last."""
    is_expansion: bool | None = None
    """Whether it is a related word that is not written there. None where places were not computed."""
    if_removed: float | None = None
    """Exact change of what is explained when this word alone is removed; None where it was not computed."""
    region_changed: bool | None = None
    """Whether that removal switches hidden units, so that `contribution` need not be its effect."""
    label_if_removed: str | None = None
    """The label after that removal."""
    default: float | None = None
    """Its contribution by the table, without context; None for models whose words have no default."""
    cause: Cause | None = None
    """What shifts it; None where nothing does, where no single word does, or where causes were not computed."""

    @property
    def context(self) -> float | None:
        """What context adds to the default, exactly zero for a word that it does not shift; None without a default."""
        return None if self.default is None else self.contribution - self.default


def merged(words: Sequence[WordContribution]) -> tuple[WordContribution, ...]:
    """The forms of a word as one, the strongest sum first."""
    groups = grouped_forms([word.word if word.kind == WORD else None for word in words])
    made = [_as_one([words[place] for place in group]) for group in groups]
    return tuple(sorted(made, key=lambda word: -abs(word.contribution)))


def _as_one(forms: Sequence[WordContribution]) -> WordContribution:
    """Several forms of a word as one; their places and removal effects are known of each alone."""
    if len(forms) == 1:
        return forms[0]
    defaults = [word.default for word in forms if word.default is not None]
    causes = [word.cause for word in forms if word.context]
    return WordContribution(
        joined_forms(word.word for word in forms),
        WORD,
        math.fsum(word.activation for word in forms),
        math.fsum(word.contribution for word in forms),
        default=math.fsum(defaults) if len(defaults) == len(forms) else None,
        cause=causes[0] if len(causes) == 1 else None,
    )


@dataclass(frozen=True)
class SpanContribution:
    """One word of the text: the contributions of all active words that it activated."""

    __pydantic_config__: ClassVar = STRICT

    text: str
    start: int
    end: int
    """One after the last character."""
    score: float


@dataclass(frozen=True)
class Pieces:
    """Active word pieces and symbols, summed instead of named: with them every total stays exact."""

    __pydantic_config__: ClassVar = STRICT

    count: int
    contribution: float
    magnitude: float
    """Sum of `|contribution|`."""
    region_changes: int | None
    """How many of their single removals switch hidden units; None where effects were not computed."""
    label_changes: int | None
    """How many of their single removals change the label."""

    @classmethod
    def of(cls, words: Sequence[WordContribution], label: str) -> "Pieces":
        """The sums over these; `label` is the label decided on."""
        regions = [word.region_changed for word in words if word.region_changed is not None]
        labels = [word.label_if_removed != label for word in words if word.label_if_removed is not None]
        return cls(
            len(words),
            math.fsum(word.contribution for word in words),
            math.fsum(abs(word.contribution) for word in words),
            sum(regions) if regions else None,
            sum(labels) if labels else None,
        )
