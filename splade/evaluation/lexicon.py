"""The lexicon of a model: per class, the words that speak for it and against it over a corpus, with uncertainty."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from splade.evaluation.collect import ReadBatch
from splade.evaluation.moments import Means, Moments

NameOf = Callable[[int], str]
"""The name of a dimension."""


@dataclass(frozen=True)
class LexiconWord:
    """What a word says for a class, on average over the texts of the class."""

    name: str
    contribution: float
    """Class-centred mean over all texts of the class; zero where the word is not active."""
    low: float | None
    high: float | None
    """Ends of the mean's 95 % interval (Student's, over texts); None with fewer than two texts."""
    frequency: float
    """Share of the texts of the class in which the word is active."""
    count: int
    """Number of those texts."""
    strength: float
    """Mean strength where it is active."""
    is_rare: bool
    """Whether it is active in so few texts that neither the mean nor its interval should be trusted."""
    dimension: int


@dataclass(frozen=True)
class ClassLexicon:
    """The words of one class."""

    label: str
    texts: int
    """Texts that count under the class."""
    speaks_for: tuple[LexiconWord, ...]
    """The greatest contribution first."""
    speaks_against: tuple[LexiconWord, ...]
    """The most negative contribution first."""


@dataclass(frozen=True)
class Lexicon:
    """The words of every class over a corpus."""

    texts: int
    classes: tuple[ClassLexicon, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


class LexiconCollector:
    """Keeps, per class and word, count, mean and spread of the contribution to the class on its own texts."""

    def __init__(self, num_classes: int, size: int) -> None:
        self.size = size
        self.texts = torch.zeros(num_classes, dtype=torch.float64, device="cpu")
        self.contributions = Moments(num_classes * size)
        self.strengths = Moments(num_classes * size)

    def update(self, batch: ReadBatch) -> None:
        """Add the texts of a batch."""
        code = batch.state.code
        self.add(batch.classes, code.rows, code.ids, batch.own_contributions, code.values)

    def add(
        self,
        classes: Int[Tensor, " B"],
        rows: Int[Tensor, " K"],
        ids: Int[Tensor, " K"],
        contributions: Float[Tensor, " K"],
        strengths: Float[Tensor, " K"],
    ) -> None:
        """Add texts by their class and their active words; `rows` says which text each word is active in."""
        self.texts += torch.bincount(classes.cpu(), minlength=len(self.texts))
        cells = classes[rows] * self.size + ids
        self.contributions.update(cells, contributions)
        self.strengths.update(cells, strengths)

    def lexicon(self, labels: Sequence[str], name_of: NameOf, top: int = 20, min_count: int = 5) -> Lexicon:
        """The `top` words for and against each class; those active in fewer than `min_count` texts are marked rare."""
        means = self.contributions.means_over(self.texts.repeat_interleave(self.size))
        classes = [self._of_class(c, label, means, name_of, top, min_count) for c, label in enumerate(labels)]
        return Lexicon(int(self.texts.sum()), tuple(classes))

    def _of_class(
        self, index: int, label: str, means: Means, name_of: NameOf, top: int, min_count: int
    ) -> ClassLexicon:
        own = means.mean[index * self.size : (index + 1) * self.size]
        sides = []
        for values in (own, -own):
            order = strongest_first(values, top)
            sides.append(tuple(self._word(index, i, means, name_of(i), min_count) for i in order))
        return ClassLexicon(label, int(self.texts[index]), *sides)

    def _word(self, index: int, dimension: int, means: Means, name: str, min_count: int) -> LexiconWord:
        cell = index * self.size + dimension
        count = int(self.contributions.count[cell])
        return LexiconWord(
            name=name,
            contribution=float(means.mean[cell]),
            low=means.ends(cell)[0],
            high=means.ends(cell)[1],
            frequency=count / float(self.texts[index]),
            count=count,
            strength=float(self.strengths.mean[cell]),
            is_rare=count < min_count,
            dimension=dimension,
        )


def strongest_first(values: Float[Tensor, " N"], top: int) -> list[int]:
    """Where the greatest positive values stand, at most `top`; of equal ones the first.

    Example: `strongest_first([1, 0, 3, -2], 5) -> [2, 0]`
    """
    order = values.argsort(descending=True, stable=True)[:top]
    return order[values[order] > 0].tolist()
