"""Do contributions sum to the decision, text by text? And how far are they from the effect of removing a word?

The first is an identity and must hold up to rounding. The second is no identity: a removal may switch hidden units, so
the figures here say how literally a contribution may be read as an effect.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lexical_sae.evaluation.bootstrap import BootstrapMeans
from lexical_sae.evaluation.circuit_words import Rankings, speaks_for_predicted
from lexical_sae.evaluation.collect import DecisionBatch
from lexical_sae.evaluation.intervals import Interval, Number
from lexical_sae.evaluation.metrics.metric import streamed
from lexical_sae.mechanistic.attribution import code_identity_error, worst_gap
from lexical_sae.mechanistic.exact import class_centered

TOLERANCE = 1e-5
"""Of single precision, relative to the sum of |contributions|."""


@dataclass(frozen=True)
class Verification:
    """The identity over all texts, and contributions beside effects."""

    worst_relative_error: Number
    """Greatest `|logit - contributions - bias| / max(1, sum |contributions|)` of any text and class."""
    worst_absolute_error: Number
    """Greatest gap of the class-centred contributions, in logits."""
    worst_text: int
    """Place of the text with the greatest relative error."""
    texts_beyond_tolerance: int
    """Texts whose relative error is above 1e-5: none, if all is well."""
    same_sign: Interval
    """Share of a text's words whose removal moves the decision the way that their contribution says."""
    effect_error: Interval
    """Sum of |contribution - effect of removal| as a share of the sum of |effects|."""
    region_changed: Interval
    """Share of a text's words whose removal switches a hidden unit."""


class VerificationCollector:
    """Checks every text of a batch."""

    def __init__(self, rankings: Rankings, seed: int = 0) -> None:
        self.rankings = rankings
        self.means = BootstrapMeans(seed=seed)
        self.worst, self.worst_gap, self.worst_text, self.beyond = -1.0, 0.0, -1, 0

    @torch.no_grad()
    def update(self, batch: DecisionBatch) -> None:
        """Check the identity and compare contributions with effects."""
        errors = code_identity_error(batch.state)
        at = int(errors.argmax())
        # Not `>`: an error that is not a number is the worst there is, and stays it.
        if not (math.isnan(self.worst) or float(errors[at]) <= self.worst):
            self.worst, self.worst_text = float(errors[at]), batch.rows[at]
        self.beyond += int((~(errors <= TOLERANCE)).sum())
        self.worst_gap = worst_gap(self.worst_gap, float(_centered_gap(batch).max()))
        removal, direct = self.rankings.removals(batch), speaks_for_predicted(batch)
        effects = removal.effects.towards(class_centered(batch.state.logits, batch.predicted))
        count = batch.state.code.counts.to(direct.dtype)
        # A text without words has no share of anything.
        count = count.masked_fill(count == 0, torch.nan)
        figures = {
            "same sign": _per_text(batch, (effects.sign() == direct.sign()).to(direct.dtype)) / count,
            "changed": _per_text(batch, removal.region_changed.to(direct.dtype)) / count,
            "error": _per_text(batch, (direct - effects).abs()),
            "effects": _per_text(batch, effects.abs()),
        }
        self.means.update(batch.drawn_with, figures)

    def result(self) -> Verification:
        """All checks so far."""
        return Verification(
            self.worst,
            self.worst_gap,
            self.worst_text,
            self.beyond,
            self.means.share("same sign"),
            self.means.ratio("error", "effects"),
            self.means.share("changed"),
        )


def _per_text(batch: DecisionBatch, values: Float[Tensor, " K"]) -> Float[Tensor, " B"]:
    return values.new_zeros(len(batch.rows)).index_add_(0, batch.state.code.rows, values)


def _centered_gap(batch: DecisionBatch) -> Float[Tensor, " B"]:
    """Gap between each class-centred logit and its centred contributions and bias, the greatest over classes."""
    state = batch.state
    rest = state.logits - state.b_eff
    rest = rest - rest.mean(-1, keepdim=True)
    return rest.index_add(0, state.code.rows, batch.contributions.to(rest.dtype), alpha=-1).abs().amax(-1)


VERIFICATION = streamed("verification", Verification, lambda of: VerificationCollector(of.rankings, of.seed))
