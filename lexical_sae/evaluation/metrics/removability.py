"""How often does a decision change when its top-attributed words are taken away?

Words that contribute most to the predicted class go first; a text with fewer words loses them all. Controls are as
many random words, and the removal of every word, which is the most that can change.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lexical_sae.evaluation.bootstrap import BootstrapMeans
from lexical_sae.evaluation.circuit_words import Rankings, logits_without
from lexical_sae.evaluation.collect import DecisionBatch
from lexical_sae.evaluation.intervals import Interval
from lexical_sae.evaluation.metrics.metric import streamed
from lexical_sae.evaluation.settings import REMOVED_WORDS
from lexical_sae.mechanistic.exact import strongest


@dataclass(frozen=True)
class FlipRate:
    """Share of texts whose label changes without that many words, by the order of removal."""

    words: int
    orders: dict[str, Interval]
    advantage: Interval
    """Of direct attribution over random words, paired by text."""


@dataclass(frozen=True)
class RemovabilityResult:
    """Flip rates by number of words."""

    removed: tuple[FlipRate, ...]
    everything: Interval
    """Share of texts whose label changes without any words."""


class RemovabilityCollector:
    """Takes words away and counts changed labels, batch by batch."""

    def __init__(self, rankings: Rankings, counts: Sequence[int] = REMOVED_WORDS, seed: int = 0) -> None:
        self.rankings, self.counts = rankings, tuple(counts)
        self.means = BootstrapMeans(seed=seed)

    def update(self, batch: DecisionBatch) -> None:
        """Remove words of a batch in every order."""
        code = batch.state.code
        everything = torch.ones_like(code.ids, dtype=torch.bool)
        figures = {"everything": self._flips(batch, everything)}
        for name, orders in self.rankings.orders(batch).items():
            for count in self.counts:
                flips = [self._flips(batch, strongest(code, scores, count)) for scores in orders]
                figures[f"{name} {count}"] = torch.stack(flips).mean(0)
        self.means.update(batch.drawn_with, figures)

    def result(self) -> RemovabilityResult:
        """All flips so far."""
        removed = tuple(
            FlipRate(
                count,
                {name: self.means.share(f"{name} {count}") for name in Rankings.NAMES},
                self.means.difference(f"direct {count}", f"random {count}", of_shares=True),
            )
            for count in self.counts
        )
        return RemovabilityResult(removed, self.means.share("everything"))

    def _flips(self, batch: DecisionBatch, chosen: Tensor) -> Float[Tensor, " B"]:
        left = logits_without(self.rankings.head, batch.state, chosen)
        return (left.argmax(-1) != batch.predicted).to(left.dtype)


REMOVABILITY = streamed(
    "removability",
    RemovabilityResult,
    lambda of: RemovabilityCollector(of.rankings, of.settings.removed_words, of.seed),
)
