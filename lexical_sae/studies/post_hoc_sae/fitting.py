"""Fitting sparse autoencoders to hidden states: ReLU with an L1 penalty, the largest k, and a random dictionary.

All three have the same width and the same number of active features. The random dictionary is a control: its encoder is
learned, its directions stay random.
"""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import normalize

from lexical_sae.mechanistic.sae import LargestK, SparseAutoencoder
from lexical_sae.utils.device import set_seed
from lexical_sae.utils.errors import DataError
from lexical_sae.utils.part import PartConfig
from lexical_sae.utils.progress import OnStep, Step, silent


class SAESettings(PartConfig):
    """How a sparse autoencoder is fitted."""

    features_per_unit: int = Field(default=4, ge=1)
    """Features for each unit of the hidden state."""
    steps: int = Field(default=1500, ge=1)
    batch_size: int = Field(default=256, ge=1)
    learning_rate: float = Field(default=2e-3, gt=0)
    revivals: int = Field(default=8, ge=0)
    """How often, in the first half, features that never fire get a new direction from badly reconstructed states."""
    seed: int = Field(default=0, ge=0)


Penalty = Callable[[Float[Tensor, "B F"]], Float[Tensor, ""]]
"""Penalty of a batch of codes, added to the reconstruction error."""


class SteeredL1:
    """An L1 penalty whose weight is tuned to a target number of active features."""

    START, RATE = 1e-3, 0.02

    def __init__(self, active: float) -> None:
        self.active, self.weight = active, self.START

    def __call__(self, code: Float[Tensor, "B F"]) -> Float[Tensor, ""]:
        found = float((code.detach() > 0).sum(-1).float().mean())
        self.weight *= float(np.exp(self.RATE * np.clip(found / self.active - 1, -1, 1)))
        return self.weight * code.sum(-1).mean()


def no_penalty(code: Float[Tensor, "B F"]) -> Float[Tensor, ""]:
    """For codes that are sparse by construction."""
    return code.new_zeros(())


def fit_relu_sae(
    states: Float[Tensor, "N E"], active: float, settings: SAESettings = SAESettings(), on_step: OnStep = silent
) -> SparseAutoencoder:
    """ReLU features under an L1 penalty, about `active` of them per state."""
    sae = _started(states, nn.ReLU(), settings)
    return _fit(sae, states, SteeredL1(active), settings, "fitting the ReLU SAE", on_step)


def fit_topk_sae(
    states: Float[Tensor, "N E"], active: float, settings: SAESettings = SAESettings(), on_step: OnStep = silent
) -> SparseAutoencoder:
    """The `active` largest features of each state."""
    sae = _started(states, LargestK(max(1, round(active))), settings)
    return _fit(sae, states, no_penalty, settings, "fitting the TopK SAE", on_step)


def fit_random_dictionary(
    states: Float[Tensor, "N E"], active: float, settings: SAESettings = SAESettings(), on_step: OnStep = silent
) -> SparseAutoencoder:
    """The control: as `fit_topk_sae`, but the directions stay random, and only the encoder is learned."""
    sae = _started(states, LargestK(max(1, round(active))), settings)
    sae.dictionary.requires_grad_(False)
    alone = settings.model_copy(update={"revivals": 0})
    return _fit(sae, states, no_penalty, alone, "fitting the random dictionary", on_step)


FITTERS = {"ReLU SAE": fit_relu_sae, "TopK SAE": fit_topk_sae, "random dictionary": fit_random_dictionary}
"""The autoencoders of the comparison, by their name in tables."""


def _started(states: Float[Tensor, "N E"], activation: nn.Module, settings: SAESettings) -> SparseAutoencoder:
    if len(states) < 2:
        raise DataError(f"{len(states)} hidden states are too few to fit a dictionary to; give at least two texts")
    set_seed(settings.seed)
    sae = SparseAutoencoder(states.shape[1], settings.features_per_unit * states.shape[1], activation)
    sae.to(states.device).centre_on(states)
    return sae


def _fit(
    sae: SparseAutoencoder,
    states: Float[Tensor, "N E"],
    penalty: Penalty,
    settings: SAESettings,
    task: str,
    on_step: OnStep,
) -> SparseAutoencoder:
    """Minimise the error relative to the spread of the states, plus the penalty; the rate falls to zero linearly."""
    learned = [p for p in sae.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(learned, settings.learning_rate)
    decay = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, settings.steps)
    random = np.random.default_rng(settings.seed)
    period = settings.steps // (2 * settings.revivals) if settings.revivals else 0
    has_fired = torch.zeros_like(sae.bias, dtype=torch.bool)
    for step in range(1, settings.steps + 1):
        batch = states[torch.from_numpy(random.integers(len(states), size=settings.batch_size))]
        code = sae.encode(batch)
        error = ((sae.decode(code) - batch) / sae.scale).square().sum(-1).mean()
        optimizer.zero_grad()
        (error + penalty(code)).backward()
        optimizer.step()
        decay.step()
        if sae.dictionary.requires_grad:
            sae.normalise()
        has_fired |= (code > 0).any(0)
        if period and step % period == 0 and step <= settings.steps // 2:
            _revive(sae, optimizer, batch, ~has_fired, random)
            has_fired.zero_()
        figures = {"error": float(error.detach()), "active": float((code > 0).sum(-1).float().mean())}
        on_step(Step(task, step, settings.steps, figures))
    return sae.eval().requires_grad_(False)


@torch.no_grad()
def _revive(
    sae: SparseAutoencoder,
    optimizer: torch.optim.Optimizer,
    batch: Float[Tensor, "B E"],
    is_dead: Bool[Tensor, " F"],
    random: np.random.Generator,
) -> None:
    """Point dead features at the residuals of badly reconstructed states, and reset their optimiser state.

    Every state serves one feature: twins would read and fire alike. Features beyond that wait for the next time.
    """
    left_over = (batch - sae(batch)) / sae.scale
    _, first = np.unique(left_over.cpu().numpy(), axis=0, return_index=True)
    left_over = left_over[torch.from_numpy(np.sort(first)).to(left_over.device)]
    badness = left_over.square().sum(-1).double().cpu().numpy()
    revived = is_dead.nonzero().flatten()[: int((badness > 0).sum())]
    if not len(revived):
        return
    chosen = random.choice(len(badness), size=len(revived), replace=False, p=badness / badness.sum())
    directions = normalize(left_over[torch.from_numpy(chosen).to(left_over.device)], dim=-1)
    sae.dictionary[revived] = directions
    sae.reader[:, revived] = directions.T
    sae.bias[revived] = 0.0
    for moment in ("exp_avg", "exp_avg_sq"):
        optimizer.state[sae.dictionary][moment][revived] = 0.0
        optimizer.state[sae.reader][moment][:, revived] = 0.0
        optimizer.state[sae.bias][moment][revived] = 0.0
