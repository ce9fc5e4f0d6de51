"""Fine-tuning without words: how every dense baseline is trained and chosen."""

import copy
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from torch import Tensor, nn

from lexical_sae.data.batches import TokenizedTexts, shuffled_buckets
from lexical_sae.training.optim import AdamWEMA, ParameterGroup
from lexical_sae.utils.device import set_seed
from lexical_sae.utils.precision import EncoderType, encoder_precision, require_encoder_type
from lexical_sae.utils.progress import OnStep, Step, silent

DENSE_RATES = (5e-5, 1e-4, 2e-4)
"""Learning rates that a dense baseline may choose from, by what it is worth on the validation texts."""

Model = TypeVar("Model", bound=nn.Module)


class DenseTraining(NamedTuple):
    """How a dense baseline is trained; as long, and in the same pieces, as the model it is compared with."""

    epochs: int
    batch_size: int
    max_length: int
    """Most tokens of a text."""
    rates: Sequence[float] = DENSE_RATES
    """To choose from, on the validation texts."""
    seed: int = 0
    device: str = "auto"
    dtype: EncoderType = "float32"
    """What training steps are computed in; decisions always are in single precision."""
    on_step: OnStep = silent


def fine_tune(
    model: nn.Module, texts: TokenizedTexts, loss_of: Callable[[list[int]], Tensor], rate: float, asked: DenseTraining
) -> None:
    """Train all that learns, at a rate that falls linearly; `loss_of` is the loss of the texts in some rows."""
    steps = asked.epochs * -(-len(texts) // asked.batch_size)
    parameters = [p for p in model.parameters() if p.requires_grad]
    device = parameters[0].device
    require_encoder_type(asked.dtype, device)
    optimizer = AdamWEMA.Config(schedule="linear", ema=None).build([ParameterGroup("all", parameters, rate)], steps)
    model.train()
    for epoch in range(asked.epochs):
        for rows in shuffled_buckets(texts, asked.batch_size, np.random.default_rng([asked.seed, epoch])):
            with encoder_precision(asked.dtype, device):
                loss = loss_of(rows)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            asked.on_step(Step(f"dense baseline, lr {rate:g}", optimizer.steps, steps, {"loss": loss.item()}))


def rate_name(rate: float) -> str:
    """A rate's name among the settings."""
    return f"lr={rate:g}"


def best_of_rates(
    asked: DenseTraining, trained: Callable[[float], Model], worth: Callable[[Model], float]
) -> tuple[Model, str, dict[str, float]]:
    """The model of the best rate, the rate's name, and the worth of every rate's model; each starts from the seed."""
    kept: dict[str, Model] = {}
    found: dict[str, float] = {}
    for rate in asked.rates:
        set_seed(asked.seed)
        model = trained(rate)
        name = rate_name(rate)
        found[name] = worth(model)
        if found[name] == max(found.values()):
            kept = {name: copy.deepcopy(model)}
    ((best, model),) = kept.items()
    return model, best, found
