"""Attribution methods that differentiate the head by the activations of the active words.

For two ReLU layers gradient x activation *is* direct attribution, so there it is no method of its own: the comparison
checks that the two agree. For other heads it takes part. Everywhere the gradient alone does, with its sign, and its
average along a sampled path.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from lexical_sae.evaluation.explainers.case import Case, Scores
from lexical_sae.evaluation.explainers.explainer import Answer, ByFunction
from lexical_sae.models.sparse_code import SparseCode

REFERENCE = "Sundararajan et al. 2017, arXiv:1703.01365"


def gradient(case: Case, _seed: int) -> Scores:
    """Slope of the explained number in the activation of each active word, with its sign."""
    return _slopes(case, torch.ones(1, dtype=case.state.code.values.dtype))[0]


def gradient_times_activation(case: Case, seed: int) -> Scores:
    """What each word would add if the slope were the same all the way from nothing."""
    return case.state.code.values * gradient(case, seed)


def integrated_gradients(case: Case, steps: int) -> Scores:
    """Activation x mean slope at `steps` points on the straight way from no words to the text (midpoint rule).

    Sums to `explained(s) - explained(0)` up to the error of the sampling; `along_path` has none.
    """
    values = case.state.code.values
    shares = (torch.arange(steps, dtype=values.dtype, device=values.device) + 0.5) / steps
    return values * _slopes(case, shares).mean(0)


def _slopes(case: Case, shares: Float[Tensor, " S"]) -> Float[Tensor, "S K"]:
    """Slopes where every word has only a share of its activation, for several shares at once."""
    code, count = case.state.code, len(shares)
    points = (shares.to(code.values)[:, None] * code.values).detach()
    with torch.enable_grad():
        values = points.flatten().requires_grad_()
        logits = case.model.head().read(_side_by_side(code, values, count)).logits
        (slopes,) = torch.autograd.grad(case.explained(logits).sum(), values)
    return slopes.reshape(count, -1)


def _side_by_side(code: SparseCode, values: Float[Tensor, " K"], count: int) -> SparseCode:
    """The words of one text `count` times, as separate texts, with these activations."""
    size = len(code.ids)
    offsets = size * torch.arange(count + 1, device=code.ids.device)
    repeated = {"ids": code.ids.repeat(count), "values": values, "positions": code.positions.repeat(count)}
    return replace(code, **repeated, offsets=offsets, defaults=None)


GRADIENT = ByFunction(
    "gradient", "slope of the logit in each word's activation, with its sign", gradient, is_in_logits=False
)
GRADIENT_TIMES_STRENGTH = ByFunction(
    "gradient_times_activation",
    "slope of the logit in each word's activation, times the activation",
    gradient_times_activation,
)


@dataclass(frozen=True)
class SampledPath:
    """Integrated gradients as they are made where there is no closed form."""

    steps: int = 50
    name: str = "integrated_gradients"
    is_drawn: bool = False
    is_in_logits: bool = True

    @property
    def about(self) -> str:
        return f"integrated gradients from no words, {self.steps} steps"

    def explain(self, case: Case, seed: int) -> Answer:
        """Scores at the bottleneck."""
        del seed
        return Answer(active=integrated_gradients(case, self.steps))
