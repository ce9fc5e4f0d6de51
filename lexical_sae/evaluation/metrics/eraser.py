"""Comprehensiveness and sufficiency of explanations, measured where they are made: on the active words.

For the predicted class, and for 1, 5, 10, 20 and 50 % of a text's active words in an explanation's order:

    comprehensiveness   probability lost when those words are taken away; high is good
    sufficiency         probability lost when only those words are left; low is good

AOPC is the mean over the five budgets, which are the same for every order. Words are put in order by how much they
speak *for* the class. Direct attribution equals gradient x input here, so it needs no comparison with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lexical_sae.evaluation.bootstrap import BootstrapMeans
from lexical_sae.evaluation.circuit_words import Rankings, logits_of_only, logits_without, select_circuit
from lexical_sae.evaluation.collect import DecisionBatch
from lexical_sae.evaluation.intervals import Interval
from lexical_sae.evaluation.metrics.metric import streamed
from lexical_sae.evaluation.settings import FRACTIONS

REFERENCE = "DeYoung et al. 2020, arXiv:1911.03429"


@dataclass(frozen=True)
class Budget:
    """What a share of the words does."""

    fraction: float
    comprehensiveness: Interval
    sufficiency: Interval


@dataclass(frozen=True)
class EraserScores:
    """One order of words."""

    comprehensiveness: Interval
    """AOPC: mean over the budgets."""
    sufficiency: Interval
    budgets: tuple[Budget, ...]


@dataclass(frozen=True)
class EraserResult:
    """Direct attribution, beside the exact effect of single removals and words sampled at random."""

    orders: dict[str, EraserScores]
    comprehensiveness_advantage: Interval
    """Of direct attribution over random words, paired by text."""


class EraserCollector:
    """Takes words away in each order, batch by batch."""

    def __init__(self, rankings: Rankings, fractions: Sequence[float] = FRACTIONS, seed: int = 0) -> None:
        self.rankings, self.fractions = rankings, tuple(fractions)
        self.means = BootstrapMeans(seed=seed)

    def update(self, batch: DecisionBatch) -> None:
        """Measure a batch in every order."""
        figures: dict[str, Tensor] = {}
        for name, orders in self.rankings.orders(batch).items():
            for fraction in self.fractions:
                lost = torch.stack([self._lost(batch, scores, fraction) for scores in orders]).mean(0)
                figures[f"{name} {fraction} c"], figures[f"{name} {fraction} s"] = lost.unbind(-1)
            for kind in "cs":
                figures[f"{name} {kind}"] = torch.stack([figures[f"{name} {f} {kind}"] for f in self.fractions]).mean(0)
        self.means.update(batch.drawn_with, figures)

    def result(self) -> EraserResult:
        """All orders so far."""
        orders = {name: self._scores(name) for name in Rankings.NAMES}
        return EraserResult(orders, self.means.difference("direct c", "random c"))

    def _lost(self, batch: DecisionBatch, scores: Float[Tensor, " K"], fraction: float) -> Float[Tensor, "B 2"]:
        """Probability of the predicted class lost without the words, and with nothing else."""
        head, state = self.rankings.head, batch.state
        chosen = select_circuit(state.code, scores, fraction)
        without, alone = logits_without(head, state, chosen), logits_of_only(head, state, chosen)
        full, *left = (_probability(logits, batch.predicted) for logits in (state.logits, without, alone))
        return torch.stack([full - one for one in left], dim=-1)

    def _scores(self, name: str) -> EraserScores:
        budgets = tuple(
            Budget(fraction, self.means[f"{name} {fraction} c"], self.means[f"{name} {fraction} s"])
            for fraction in self.fractions
        )
        return EraserScores(self.means[f"{name} c"], self.means[f"{name} s"], budgets)


def _probability(logits: Float[Tensor, "B C"], classes: Tensor) -> Float[Tensor, " B"]:
    return logits.softmax(-1).gather(1, classes[:, None]).squeeze(1)


ERASER = streamed("eraser", EraserResult, lambda of: EraserCollector(of.rankings, of.settings.fractions, of.seed))
