"""How steady a word's effective weight is: `W_eff` changes with the hidden units that are on, so from text to text.

A word whose weight hardly moves means the same everywhere, and one number describes it; a word whose weight changes its
sign contributes to a class here and against it there.
"""

from dataclasses import asdict, dataclass
from typing import Any

import torch

from lexical_sae.evaluation.collect import ReadBatch
from lexical_sae.evaluation.moments import Moments


@dataclass(frozen=True)
class WordWeight:
    """The class-centred `W_eff[c, j]` of one word and class, over the texts where the word is active."""

    mean: float
    spread: float
    """Standard deviation."""
    same_sign: float
    """Share of those texts in which the weight has its more frequent sign; a weight of zero has none."""
    count: int


@dataclass(frozen=True)
class WeightSummary:
    """How steady the weights are altogether, over all words that are active in enough texts."""

    words: int
    same_sign: float | None
    """Mean over words and classes; None without words."""
    relative_spread: float | None
    """Sum of the spreads over the sum of |mean|: 0 for a linear model. None where all means are zero."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


class WeightCollector:
    """Keeps mean, spread and signs of `W_eff[c, j]` per class and word, over the texts where the word is active."""

    def __init__(self, num_classes: int, size: int) -> None:
        self.num_classes, self.size = num_classes, size
        self.weights = Moments(num_classes * size)
        self.positive, self.negative = torch.zeros(2, num_classes * size, dtype=torch.float64, device="cpu")

    def update(self, batch: ReadBatch) -> None:
        """Add the active words of a batch."""
        ids, weights = batch.state.code.ids.cpu(), batch.weights.cpu()
        for index, values in enumerate(weights.T):
            cells = index * self.size + ids
            self.weights.update(cells, values)
            self.positive.index_add_(0, cells, (values > 0).double())
            self.negative.index_add_(0, cells, (values < 0).double())

    def of(self, class_index: int, dimension: int) -> WordWeight | None:
        """The weight of one word for one class; None where the word was never active."""
        cell = class_index * self.size + dimension
        count = int(self.weights.count[cell])
        if not count:
            return None
        same_sign = max(float(self.positive[cell]), float(self.negative[cell])) / count
        return WordWeight(float(self.weights.mean[cell]), float(self.weights.spread[cell]), same_sign, count)

    def summary(self, min_count: int = 5) -> WeightSummary:
        """How steady the weights of the words are that are active in at least `min_count` texts."""
        enough = self.weights.count >= min_count
        if not bool(enough.any()):
            return WeightSummary(0, None, None)
        same_sign = self.positive.maximum(self.negative)[enough] / self.weights.count[enough]
        size = float(self.weights.mean[enough].abs().sum())
        spread = float(self.weights.spread[enough].sum())
        words = int(enough.sum()) // self.num_classes
        return WeightSummary(words, float(same_sign.mean()), spread / size if size else None)
