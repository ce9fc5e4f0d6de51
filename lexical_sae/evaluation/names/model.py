"""What a model must answer for its names to be tested: which words it shows for a text, and what an edit does to one.

`LexicalSAENames` and `BagOfWords` answer alike, so that a ceiling is measured by the very tests that it is a ceiling
for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from lexical_sae.data.words import Span
from lexical_sae.utils.progress import OnStep, silent


@dataclass(frozen=True)
class NamedWord:
    """A word that a model shows for a text."""

    dimension: int
    name: str
    span: Span | None
    """The whole word of the text that activated it; None where that is a special token such as [CLS]."""
    activation: float
    contributions: tuple[float, ...]
    """Class-centred, one per class."""
    contribution: float
    """The one to the predicted class."""


@dataclass(frozen=True)
class Reading:
    """The words that a model shows for one text."""

    text: str
    label: int
    """Predicted class."""
    words: tuple[NamedWord, ...]
    """All active words, the top-attributed first."""
    written: frozenset[int]
    """Dimensions of the tokens that the text is written in."""


@dataclass(frozen=True)
class Probe:
    """A question: what does this dimension say for this class of this text?"""

    text: str
    dimension: int
    label: int


@dataclass(frozen=True)
class Response:
    """The answer to a probe; zeros where the dimension is not active."""

    contribution: float
    activation: float


@runtime_checkable
class NamedModel(Protocol):
    """A classifier whose features carry names."""

    @property
    def blank(self) -> str:
        """What to write in the place of a deleted word."""
        ...

    def as_read(self, texts: Sequence[str]) -> list[str]:
        """What the model reads of each text: a word behind the cut is not written there for it."""
        ...

    def contributions(self, texts: Sequence[str], on_step: OnStep = silent) -> list[Reading]:
        """What the model shows for each text. The text of a reading is the one that `as_read` gives."""
        ...

    def responses(self, probes: Sequence[Probe], on_step: OnStep = silent) -> list[Response]:
        """The answer to each probe, in their order."""
        ...

    def dimensions_of(self, words: Sequence[str]) -> list[tuple[int, ...]]:
        """The dimensions that stand for each whole word and can open; none for a word without its own."""
        ...

    def neighbours(self, dimensions: Sequence[int], k: int) -> Mapping[int, frozenset[int]]:
        """The k dimensions nearest in meaning to each; none where the model knows no nearness."""
        ...
