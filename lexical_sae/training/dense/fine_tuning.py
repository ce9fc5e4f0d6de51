"""Fine-tuning without words: how every dense baseline is trained and chosen."""

import copy
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from torch import Tensor, nn

from lexical_sae.data.batches import TokenizedTexts, shuffled_buckets
from lexical_sae.training.optim import AdamWEMA, ParameterGroup
from lexical_sae.utils.device import set_seed
from lexical_sae.utils.progress import OnStep, Step

DENSE_RATES = (5e-5, 1e-4, 2e-4)
"""Learning rates that a dense baseline may choose from, by what it is worth on the validation texts."""

Model = TypeVar("Model", bound=nn.Module)


class Schedule(NamedTuple):
    """How long and in what pieces a dense baseline learns: the same as the model it is compared with."""

    epochs: int
    batch_size: int
    seed: int
    on_step: OnStep


def fine_tune(
    model: nn.Module, texts: TokenizedTexts, loss_of: Callable[[list[int]], Tensor], rate: float, schedule: Schedule
) -> None:
    """Train all that learns, at a rate that falls linearly; `loss_of` is the loss of the texts in some rows."""
    epochs, batch_size, seed, on_step = schedule
    steps = epochs * -(-len(texts) // batch_size)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = AdamWEMA.Config(schedule="linear", ema=None).build([ParameterGroup("all", parameters, rate)], steps)
    model.train()
    for epoch in range(epochs):
        for rows in shuffled_buckets(texts, batch_size, np.random.default_rng([seed, epoch])):
            loss = loss_of(rows)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            on_step(Step(f"dense baseline, lr {rate:g}", optimizer.steps, steps, {"loss": loss.item()}))


def rate_name(rate: float) -> str:
    """A rate's name among the settings."""
    return f"lr={rate:g}"


def best_of_rates(
    rates: Sequence[float], trained: Callable[[float], Model], worth: Callable[[Model], float], seed: int
) -> tuple[Model, str, dict[str, float]]:
    """The model of the best rate, the rate's name, and the worth of every rate's model; each starts from the seed."""
    kept: dict[str, Model] = {}
    found: dict[str, float] = {}
    for rate in rates:
        set_seed(seed)
        model = trained(rate)
        name = rate_name(rate)
        found[name] = worth(model)
        if found[name] == max(found.values()):
            kept = {name: copy.deepcopy(model)}
    ((best, model),) = kept.items()
    return model, best, found
