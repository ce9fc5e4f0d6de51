"""The lexicon of a model: per class, the words that contribute to it and against it over a corpus, with uncertainty."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lexical_sae.evaluation.collect import ReadBatch
from lexical_sae.evaluation.moments import Means, Moments

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
    """Ends of the mean's 95 % confidence interval (Student's, over texts); None with fewer than two texts."""
    frequency: float
    """Share of the texts of the class in which the word is active."""
    count: int
    """Number of those texts."""
    activation: float
    """Mean activation where it is active."""
    is_rare: bool
    """Whether it is active in so few texts that neither the mean nor its interval should be trusted."""
    dimension: int


@dataclass(frozen=True)
class PieceSum:
    """Word pieces and symbols that a list of words leaves out."""

    count: int
    """How many are active anywhere."""
    contribution: float
    """What they contribute together, in the unit of the list."""

    @classmethod
    def of(
        cls, values: Float[Tensor, " N"], is_active: Bool[Tensor, " N"], listed: Bool[Tensor, " N"] | None
    ) -> "PieceSum | None":
        """The sum over what is active and not listed; None where there is nothing."""
        unnamed = torch.zeros_like(is_active) if listed is None else is_active & ~listed
        return cls(int(unnamed.sum()), float(values[unnamed].sum())) if unnamed.any() else None


@dataclass(frozen=True)
class ClassLexicon:
    """The words of one class."""

    label: str
    texts: int
    """Texts that count under the class."""
    contributes_to: tuple[LexiconWord, ...]
    """The greatest contribution first."""
    contributes_against: tuple[LexiconWord, ...]
    """The most negative contribution first."""
    pieces: PieceSum | None = None
    """Word pieces and symbols, where they are not listed."""


@dataclass(frozen=True)
class Lexicon:
    """The words of every class over a corpus."""

    texts: int
    classes: tuple[ClassLexicon, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


class LexiconCollector:
    """Keeps, per class and word, count, mean and spread of the contribution to the class on its own texts.

    With `forms`, the dimension that each one counts under, the forms of a word are one word.
    """

    def __init__(self, num_classes: int, size: int, forms: Int[Tensor, " V"] | None = None) -> None:
        self.size, self.forms = size, forms
        self.texts = torch.zeros(num_classes, dtype=torch.float64, device="cpu")
        self.contributions = Moments(num_classes * size)
        self.activations = Moments(num_classes * size)

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
        activations: Float[Tensor, " K"],
    ) -> None:
        """Add texts by their class and their active words; `rows` says which text each word is active in."""
        self.texts += torch.bincount(classes.cpu(), minlength=len(self.texts))
        if self.forms is not None:
            pairs, pair = (rows * self.size + self.forms.to(ids.device)[ids]).unique(return_inverse=True)
            rows, ids = pairs // self.size, pairs % self.size
            contributions, activations = (
                part.new_zeros(len(pairs)).index_add_(0, pair, part) for part in (contributions, activations)
            )
        cells = classes[rows] * self.size + ids
        self.contributions.update(cells, contributions)
        self.activations.update(cells, activations)

    def lexicon(
        self,
        labels: Sequence[str],
        name_of: NameOf,
        top: int = 20,
        min_count: int = 5,
        listed: Bool[Tensor, " V"] | None = None,
    ) -> Lexicon:
        """The `top` words for and against each class; those active in fewer than `min_count` texts are marked rare.

        Only dimensions in `listed` are named, by default all; the others are summed.
        """
        means = self.contributions.means_over(self.texts.repeat_interleave(self.size))
        classes = [self._of_class(c, label, means, name_of, top, min_count, listed) for c, label in enumerate(labels)]
        return Lexicon(int(self.texts.sum()), tuple(classes))

    def _of_class(
        self,
        index: int,
        label: str,
        means: Means,
        name_of: NameOf,
        top: int,
        min_count: int,
        listed: Bool[Tensor, " V"] | None,
    ) -> ClassLexicon:
        cells = slice(index * self.size, (index + 1) * self.size)
        own = means.mean[cells]
        contributes_to, contributes_against = (
            tuple(self._word(index, i, means, name_of(i), min_count) for i in strongest_first(values, top, listed))
            for values in (own, -own)
        )
        pieces = PieceSum.of(own, self.contributions.count[cells] > 0, listed)
        return ClassLexicon(label, int(self.texts[index]), contributes_to, contributes_against, pieces)

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
            activation=float(self.activations.mean[cell]),
            is_rare=count < min_count,
            dimension=dimension,
        )


def strongest_first(values: Float[Tensor, " N"], top: int, listed: Bool[Tensor, " N"] | None = None) -> list[int]:
    """Where the greatest positive values stand, at most `top`; of equal ones the first, and only those `listed`.

    Example: `strongest_first([1, 0, 3, -2], 5) -> [2, 0]`
    """
    values = values if listed is None else values.where(listed, 0.0)
    order = values.argsort(descending=True, stable=True)[:top]
    return order[values[order] > 0].tolist()
