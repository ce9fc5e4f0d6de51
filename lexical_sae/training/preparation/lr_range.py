"""The learning-rate range test: raise the rate step by step, and take the one that brought most of the loss's fall.

The rate rises so slowly here that a model is half trained when it gets to the one that is chosen. A run gets there
within a few steps, and with an untrained head words may then close for good: on AG News none was active after eight
steps at a rate 13 times below the one at which they died out here. So the run's first steps are rehearsed at the rate
that was found, and it is lowered while words die out in them.
"""

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from lexical_sae.training.optim import ParameterGroup, at_rate
from lexical_sae.training.processes import current
from lexical_sae.training.resuming.random_state import Generator, chance_as_found

logger = logging.getLogger(__name__)

SMALLEST, LARGEST = 1e-6, 1e-3
"""No rate outside these is ever chosen."""
MOST = 0.75
"""Share of the whole fall of the loss that the rate to use has brought."""
IN_A_ROW = 3
"""Steps in a row that must agree before the test ends: one batch may be odd."""
REHEARSED_STEPS = 20
"""How many steps of the run to come, as if all were warm-up, are tried at a rate and undone."""
FEWEST = 0.1
"""Share of the words wanted, or of a batch's words before the first step if those are fewer, that must stay active."""
LOWER = 3.0
"""Factor by which a rate is lowered at which words die out."""


class Reading(NamedTuple):
    """The losses of a training batch under the current weights."""

    loss: Tensor
    active: float
    """Active words per sample."""


@dataclass(frozen=True)
class LRRange:
    """What a range test found."""

    lr: float
    """Rate to use for the first group."""
    active: tuple[float, ...]
    """Active words of each batch before the first step."""
    rates: tuple[float, ...]
    losses: tuple[float, ...]
    """Loss at each rate before the step, less how much harder its batch is than the others; not smoothed. Ends where
    the loss ran away, or where no word was active any more."""


def lr_range_test(
    read: Callable[[int], Reading],
    groups: Sequence[ParameterGroup],
    modules: Sequence[nn.Module],
    generators: Mapping[str, Generator] | None = None,
    lowest: float = 1e-7,
    highest: float = 1e-2,
    steps: int = 100,
) -> LRRange:
    """Train for a few steps at rates that grow geometrically, and undo all of it.

    Each batch is compared with itself before the first step: batches differ by more than a step changes.
    `read(i)` is the reading of the i-th training batch; `modules` are all that it trains or whose buffers it moves
    (model, objective). Parameters, buffers, gradients, modes and chance are afterwards bitwise what they were. The
    first group takes the rate, the others keep their proportion to it.

    Smith 2017, arXiv:1506.01186.
    """
    rates, losses, active = np.geomspace(lowest, highest, steps), [], []
    processes = current()
    with chance_as_found(generators), as_found(modules):
        with torch.no_grad():
            found = [read(i) for i in range(steps)]
        before = np.array([reading.loss.item() for reading in found])
        harder = before - before[np.isfinite(before)].mean() if np.isfinite(before).any() else before
        inner = torch.optim.AdamW([{"params": list(group.params), "lr": lowest} for group in groups], weight_decay=0.01)
        for i, rate in enumerate(rates.tolist()):
            reading = read(i)
            losses.append(reading.loss.item() - float(harder[i]))
            active.append(reading.active)
            if _ran_away(losses):
                break
            if len(active) >= IN_A_ROW and not any(active[-IN_A_ROW:]):
                # Guessing may have a lower loss than an untrained head: that is no fall to follow.
                del losses[-IN_A_ROW:]
                break
            inner.zero_grad(set_to_none=True)
            processes.share_of(reading.loss).backward()
            processes.sum_gradients(parameter for group in groups for parameter in group.params)
            for ours, group in zip(inner.param_groups, at_rate(groups, rate), strict=True):
                ours["lr"] = group.lr
            inner.step()
    tried = tuple(rates.tolist()[: len(losses)])
    lr = rate_after_fall(tried, losses)
    if lr is None:
        lr = groups[0].lr
        logger.warning("the range test found no rate at which the loss falls; keeping %.1e", lr)
    words = tuple(reading.active for reading in found)
    return LRRange(min(max(lr, SMALLEST), LARGEST), words, tried, tuple(losses))


def rate_after_fall(rates: Sequence[float], losses: Sequence[float], window: int = 11) -> float | None:
    """The first rate by which the smoothed loss has fallen by `MOST` of its whole fall; None if it never falls.

    Not the rate at which it falls fastest: with batches of text slopes are mostly noise, and the steepest one was found
    anywhere between 1e-6 and 1e-3.
    """
    finite = [loss for loss in losses if math.isfinite(loss)]
    if len(finite) < window:
        return None
    kernel = np.hanning(window + 2)[1:-1]
    # Smoothed about each point rather than behind it, which would put the answer too high.
    smooth = np.convolve(finite, kernel, "same") / np.convolve(np.ones(len(finite)), kernel, "same")
    started, bottom = float(np.median(finite[:window])), int(smooth.argmin())
    # Where the loss is lowest among the first rates, or not below them, it only rose.
    if bottom < window or smooth[bottom] >= started:
        return None
    return float(rates[int((smooth <= started - MOST * (started - smooth[bottom])).argmax())])


def _ran_away(losses: Sequence[float]) -> bool:
    """Whether the loss is no number, or for three steps has been four times its best."""
    best = min(losses)
    recent = losses[-IN_A_ROW:]
    has_risen = len(losses) > IN_A_ROW and all(loss > best + 3 * abs(best) for loss in recent)
    return not math.isfinite(losses[-1]) or has_risen


def rate_with_words(rate: float, share_left: Callable[[float], float]) -> float:
    """The rate, or the first of its third, ninth, ... at which `FEWEST` of the words stay active; at least `SMALLEST`.

    `share_left(rate)` rehearses a rate and gives the least share of words that any step left. A closed word sends no
    gradient through most gates, so that a run whose words have died out never recovers.
    """
    while rate > SMALLEST and (left := share_left(rate)) < FEWEST:
        lower = max(SMALLEST, rate / LOWER)
        logger.warning(
            "at a learning rate of %.1e only %.1f %% of the words stay active; trying %.1e", rate, 100 * left, lower
        )
        rate = lower
    return rate


@contextmanager
def as_found(modules: Sequence[nn.Module]) -> Iterator[None]:
    """Whatever training happens within, the modules are after bitwise what they were, down to the tensor objects."""
    every = list(dict.fromkeys(part for module in modules for part in module.modules()))
    parameters = list(dict.fromkeys(parameter for module in modules for parameter in module.parameters()))
    modes = [part.training for part in every]
    buffers = [dict(part._buffers) for part in every]
    kept = [*parameters, *(buffer for own in buffers for buffer in own.values() if buffer is not None)]
    values = [tensor.detach().clone() for tensor in kept]
    gradients = [parameter.grad for parameter in parameters]
    for parameter in parameters:
        parameter.grad = None
    try:
        yield
    finally:
        with torch.no_grad():
            for tensor, value in zip(kept, values, strict=True):
                tensor.copy_(value)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        for part, mode, own in zip(every, modes, buffers, strict=True):
            part.training = mode
            part._buffers.update(own)
