"""Shapley values of the active words, sampled: what a word adds, averaged over random orders in which words come.

Every order alone already sums to `explained(s) - explained(0)`; more orders only make the shares steadier.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from lexical_sae.evaluation.explainers.case import Case, Scores
from lexical_sae.evaluation.explainers.explainer import Answer
from lexical_sae.mechanistic.exact import WordSets, remove

REFERENCE = "Castro et al. 2009, doi:10.1016/j.cor.2008.04.004"


@dataclass(frozen=True)
class ShapleySampling:
    """Sampling of orders; each order reads the head once per active word."""

    orders: int = 20
    name: str = "shapley"
    is_drawn: bool = True
    is_in_logits: bool = True

    @property
    def about(self) -> str:
        return f"Shapley values over active words, {self.orders} random orders"

    def explain(self, case: Case, seed: int) -> Answer:
        """Scores at the bottleneck."""
        generator, device = case.drawn(seed), case.state.code.ids.device
        drawn = (torch.from_numpy(generator.permutation(case.num_active)).to(device) for _ in range(self.orders))
        return Answer(active=torch.stack([added_in_order(case, order) for order in drawn]).mean(0))


def added_in_order(case: Case, order: Int[Tensor, " K"]) -> Scores:
    """What each active word adds when words come in this order, to no words at first.

    Example: with order [1, 0], word 1 has `explained(1) - explained()` and word 0 `explained(0, 1) - explained(1)`.
    """
    count = len(order)
    # Row i of the triangle is what is still missing before word i of the order comes: the words from i on.
    missing = order.expand(count, count)[torch.ones(count, count, dtype=torch.bool, device=order.device).triu()]
    sizes = torch.arange(count, 0, -1, device=order.device)
    offsets = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
    sets = WordSets(torch.zeros_like(order), missing, offsets)
    lost = remove(case.head, case.state, sets).effects.towards(case.direction)
    added = lost - torch.cat([lost[1:], lost.new_zeros(1)])
    return torch.empty_like(added).index_copy(0, order, added)
