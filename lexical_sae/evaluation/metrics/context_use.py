"""The two context figures that a single pass gives for literal words: accuracy without context, and shifts per text.

The other context measures edit texts, fit probes and estimate defaults (`measuring`); these stand beside accuracy.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lexical_sae.evaluation.bootstrap import BootstrapMeans
from lexical_sae.evaluation.collect import DecisionBatch, ReadBatch
from lexical_sae.evaluation.context.shifts import TOLERANCE
from lexical_sae.evaluation.intervals import Interval
from lexical_sae.evaluation.metrics.metric import streamed


@dataclass(frozen=True)
class ContextUse:
    """What is left of the accuracy without context, and how often context acts."""

    context_free: Interval
    """Accuracy with every word at its default."""
    shifts: Interval
    """Words per text that are not at their default."""
    texts_without: Interval
    """Share of texts with none."""


class ContextCollector:
    """Follows what every word would contribute at its default; keeps nothing of models without defaults."""

    def __init__(self, seed: int = 0) -> None:
        self.means = BootstrapMeans(seed=seed)
        self.has_defaults = False

    def update(self, batch: ReadBatch) -> None:
        """Add the decisions of a batch, whose classes are the true ones."""
        code = batch.state.code
        if code.defaults is None:
            return
        self.has_defaults = True
        is_shifted = (code.values - code.defaults).abs() > TOLERANCE
        shifts = code.counts.new_zeros(len(code)).index_add_(0, code.rows, is_shifted.to(code.counts.dtype))
        decided = context_free_logits(batch, code.defaults).argmax(-1)
        figures = {"right": decided == batch.classes, "shifts": shifts, "none": shifts == 0}
        self.means.update(batch.rows, figures)

    def result(self) -> ContextUse | None:
        """All figures so far."""
        if not self.has_defaults:
            return None
        return ContextUse(self.means.share("right"), self.means["shifts"], self.means.share("none"))


def context_free_logits(batch: DecisionBatch, defaults: Float[Tensor, " K"]) -> Float[Tensor, "B C"]:
    """The logits with every word at its default, up to a constant per text: the table is linear.

    Example: logits [1, -1], one word of weights [0.5, -0.5] that context raised from 1 to 2 -> [0.5, -0.5]
    """
    code = batch.state.code
    context_part = (code.values - defaults)[:, None] * batch.weights
    return batch.state.logits - torch.zeros_like(batch.state.logits).index_add_(0, code.rows, context_part)


CONTEXT_USE = streamed("context", ContextUse | None, lambda of: ContextCollector(of.seed))
