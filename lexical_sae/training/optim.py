"""Optimisers behind one interface: what is trained, and the averaged weights that are scored and saved.

The order of a step: `zero_grad()`, backward (several times when accumulating), `centralise_gradients(...)` if wanted,
`step()`. Scoring and saving happen inside `averaged_weights()`; checkpoints are taken outside it.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import schedulefree
import torch
from pydantic import Field, PositiveFloat
from torch import Tensor, nn

from lexical_sae.utils.errors import DivergedError, SettingsError
from lexical_sae.utils.part import PartConfig

Schedule = Literal["cosine", "linear", "constant"]


@dataclass(frozen=True)
class ParameterGroup:
    """Parameters that learn at one rate, under a name that logs and checkpoints use."""

    name: str
    params: Sequence[nn.Parameter]
    lr: float
    """Highest rate of the schedule."""
    decays: bool = True
    """Whether weight decay applies; thresholds and offsets are not weights to be kept small."""


def at_rate(groups: Sequence[ParameterGroup], lr: float) -> list[ParameterGroup]:
    """The groups with the first one at the given rate and the others in proportion.

    Example: rates 1 and 5, `lr=0.1` -> 0.1 and 0.5
    """
    return [replace(group, lr=lr * (group.lr / groups[0].lr)) for group in groups]


@torch.no_grad()
def centralise_gradients(params: Iterable[nn.Parameter]) -> None:
    """Take from each gradient with two or more dimensions its mean over all dimensions but the first, in place.

    Yong et al. 2020, arXiv:2004.01461. The head's parameters are not to be passed: its rows must keep their sums.
    """
    for parameter in params:
        gradient = parameter.grad
        if gradient is not None and gradient.ndim > 1:
            gradient -= gradient.mean(tuple(range(1, gradient.ndim)), keepdim=True)


def schedule_factor(schedule: Schedule, step: int, planned_steps: int, warmup: float) -> float:
    """Share of the highest rate that the step numbered from 0 takes: a linear rise, then the schedule.

    Example: `schedule_factor("linear", 55, 100, 0.1)` -> 0.5
    """
    rise = max(1, round(warmup * planned_steps))
    if step < rise:
        return (step + 1) / rise
    done = min(1.0, (step - rise) / max(1, planned_steps - rise))
    return {"cosine": 0.5 * (1 + math.cos(math.pi * done)), "linear": 1 - done, "constant": 1.0}[schedule]


class Optimizer(ABC):
    """Moves the weights, and can show the averaged ones.

    A subclass wraps a torch optimizer and defines how the average gets into the parameters. Buffers are never averaged.
    """

    kind: ClassVar[str]

    def __init__(
        self,
        groups: Sequence[ParameterGroup],
        planned_steps: int,
        inner: torch.optim.Optimizer,
        clip: float | None,
    ) -> None:
        self.names = [group.name for group in groups]
        self.peak_rates = [group.lr for group in groups]
        self.planned_steps = planned_steps
        self.inner = inner
        self.clip = clip
        self.steps = 0
        """Steps taken."""
        self._shows_average = False

    @property
    def params(self) -> list[nn.Parameter]:
        """Every parameter that learns, in group order."""
        return [parameter for group in self.inner.param_groups for parameter in group["params"]]

    def zero_grad(self) -> None:
        """Forget the gradients."""
        self.inner.zero_grad(set_to_none=True)

    def step(self) -> Tensor:
        """Move the weights once; returns the gradient's norm before clipping.

        A gradient that is not a number raises before any weight has moved.
        """
        self._require_trained_weights("step()")
        norm = nn.utils.clip_grad_norm_(self.params, self.clip or math.inf)
        if not torch.isfinite(norm):
            raise DivergedError(
                f"the gradient's norm became {norm.item()} at step {self.steps + 1}; lower the learning rates"
            )
        self._move()
        self.steps += 1
        return norm

    @contextmanager
    def averaged_weights(self) -> Iterator[None]:
        """Within, the model holds the weights that are to be scored and saved; after, bitwise those that learn.

        Changes made to the parameters within are undone. Entering again within changes nothing.
        """
        if self._shows_average:
            yield
            return
        trained = [parameter.detach().clone() for parameter in self.params]
        self._shows_average = True
        try:
            self._show_average()
            yield
        finally:
            # Copied back, not computed back: schedule-free's own way back rounds.
            with torch.no_grad():
                for parameter, weights in zip(self.params, trained, strict=True):
                    parameter.copy_(weights)
            self._hide_average()
            self._shows_average = False

    def learning_rates(self) -> dict[str, float]:
        """Rate of each group in the last step, or in the first before any was taken."""
        return {name: self._rate(group) for name, group in zip(self.names, self.inner.param_groups, strict=True)}

    def state_dict(self) -> dict[str, Any]:
        """All that `load_state_dict` needs to go on bitwise; the tensors are the live ones, not copies."""
        self._require_trained_weights("state_dict()")
        return {
            "kind": self.kind,
            "groups": self._outline(),
            "peak_rates": list(self.peak_rates),
            "planned_steps": self.planned_steps,
            "steps": self.steps,
            "inner": self.inner.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a state, learning rates and planned steps included; its tensors are copied."""
        self._require_trained_weights("load_state_dict()")
        if state["kind"] != self.kind:
            raise SettingsError(f"the checkpoint is of optimiser {state['kind']!r}, this one is {self.kind!r}")
        for name, saved, own in zip(self.names, state["groups"], self._outline(), strict=False):
            if saved != own:
                raise SettingsError(f"the checkpoint's group {saved['name']!r} does not fit {name!r}: other parameters")
        if len(state["groups"]) != len(self.names):
            raise SettingsError(f"the checkpoint has {len(state['groups'])} parameter groups, not {len(self.names)}")
        self.peak_rates = list(state["peak_rates"])
        self.planned_steps = state["planned_steps"]
        self.steps = state["steps"]
        self.inner.load_state_dict(_copied(state["inner"]))

    def _outline(self) -> list[dict[str, Any]]:
        return [
            {"name": name, "shapes": [list(parameter.shape) for parameter in group["params"]]}
            for name, group in zip(self.names, self.inner.param_groups, strict=True)
        ]

    def _require_trained_weights(self, what: str) -> None:
        if self._shows_average:
            raise RuntimeError(
                f"{what} inside averaged_weights(): the model holds averages, not the weights that learn"
            )

    @abstractmethod
    def _move(self) -> None:
        """Take one step with the gradients as they are."""

    @abstractmethod
    def _rate(self, group: Mapping[str, Any]) -> float:
        """The rate of a group of the torch optimizer, as `learning_rates` returns it."""

    @abstractmethod
    def _show_average(self) -> None:
        """Put the averaged weights into the parameters."""

    @abstractmethod
    def _hide_average(self) -> None:
        """Undo what `_show_average` did besides the parameters."""


class AdamWEMA(Optimizer):
    """AdamW with a warm-up and a schedule; an exponential moving average of the weights is what is scored.

    The average is bias-corrected, so the initial weights have no part in it: after one step it is that step's weights.
    """

    REFERENCE: ClassVar = "Loshchilov & Hutter 2019, arXiv:1711.05101"
    kind: ClassVar = "adamw"

    class Config(PartConfig):
        kind: Literal["adamw"] = "adamw"
        weight_decay: float = Field(default=0.01, ge=0)
        """Share of each weight, times the learning rate, that a step takes away."""
        schedule: Schedule = "cosine"
        """How the learning rate falls after the warm-up: cosine, linear, or constant for not at all."""
        warmup: float = Field(default=0.06, ge=0, le=1)
        """Share of the planned steps in which the learning rate rises."""
        ema: float | None = Field(default=0.999, gt=0, lt=1)
        """Decay per step of the average of the weights; null scores the last weights instead."""
        clip: PositiveFloat | None = 1.0
        """Greatest norm of the whole gradient; null leaves it as it is."""

        def build(self, groups: Sequence[ParameterGroup], planned_steps: int) -> "AdamWEMA":
            return AdamWEMA(self, groups, planned_steps)

    def __init__(self, config: Config, groups: Sequence[ParameterGroup], planned_steps: int) -> None:
        _check_groups(groups, planned_steps)
        every = [parameter for group in groups for parameter in group.params]
        fused = all(p.is_floating_point() and p.device.type in ("cpu", "cuda") for p in every)
        inner = torch.optim.AdamW(
            [{"params": list(g.params), "lr": g.lr, "weight_decay": config.weight_decay * g.decays} for g in groups],
            fused=fused,
        )
        super().__init__(groups, planned_steps, inner, config.clip)
        self.config = config
        self._average: list[Tensor] = []
        self._set_rates()

    def _set_rates(self) -> None:
        factor = schedule_factor(self.config.schedule, self.steps, self.planned_steps, self.config.warmup)
        for group, peak in zip(self.inner.param_groups, self.peak_rates, strict=True):
            group["lr"] = peak * factor

    def _rate(self, group: Mapping[str, Any]) -> float:
        return float(group["lr"])

    def _move(self) -> None:
        self._set_rates()
        self.inner.step()
        if self.config.ema is not None:
            self._follow(self.config.ema, self.steps + 1)

    @torch.no_grad()
    def _follow(self, decay: float, steps: int) -> None:
        if not self._average:
            self._average = [parameter.detach().clone() for parameter in self.params]
        # The same as dividing a sum that starts at zero by 1 - decay^steps: the first step's share is 1.
        share = (1 - decay) / (1 - decay**steps)
        for average, parameter in zip(self._average, self.params, strict=True):
            average.lerp_(parameter, share)

    @torch.no_grad()
    def _show_average(self) -> None:
        # Before the first step there is no average: the weights are their own.
        for parameter, average in zip(self.params, self._average, strict=False):
            parameter.copy_(average)

    def _hide_average(self) -> None:
        """Only the parameters were changed."""

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "ema": list(self._average)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        average = state.get("ema", [])
        if self.config.ema is not None and state["steps"] and len(average) != len(self.params):
            raise SettingsError(f"the checkpoint averages {len(average)} parameters, this optimiser {len(self.params)}")
        super().load_state_dict(state)
        self._average = [a.to(p.device, copy=True) for a, p in zip(average, self.params, strict=False)]


class ScheduleFree(Optimizer):
    """Schedule-Free AdamW: no schedule to plan, the averaged weights come with the method."""

    REFERENCE: ClassVar = "Defazio et al. 2024, arXiv:2405.15682"
    kind: ClassVar = "schedule_free"

    class Config(PartConfig):
        kind: Literal["schedule_free"] = "schedule_free"
        relative_weight_decay: float = Field(default=0.1, ge=0)
        """Weight decay as a multiple of each group's learning rate."""
        warmup: float = Field(default=0.06, ge=0, le=1)
        """Share of the planned steps in which the learning rate rises."""
        clip: PositiveFloat | None = 1.0
        """Greatest norm of the whole gradient; null leaves it as it is."""

        def build(self, groups: Sequence[ParameterGroup], planned_steps: int) -> "ScheduleFree":
            return ScheduleFree(self, groups, planned_steps)

    def __init__(self, config: Config, groups: Sequence[ParameterGroup], planned_steps: int) -> None:
        _check_groups(groups, planned_steps)
        decay = config.relative_weight_decay
        inner = schedulefree.AdamWScheduleFree(
            [{"params": list(g.params), "lr": g.lr, "weight_decay": decay * g.lr * g.decays} for g in groups],
            warmup_steps=round(config.warmup * planned_steps),
        )
        inner.train()
        super().__init__(groups, planned_steps, inner, config.clip)
        self.config = config
        self.inner: schedulefree.AdamWScheduleFree = inner

    def _move(self) -> None:
        self.inner.step()

    def _rate(self, group: Mapping[str, Any]) -> float:
        if group["k"]:
            return float(group["scheduled_lr"])
        return float(group["lr"]) / max(1, group["warmup_steps"])

    def _show_average(self) -> None:
        self.inner.eval()

    def _hide_average(self) -> None:
        for group in self.inner.param_groups:
            group["train_mode"] = True


OptimizerConfig = AdamWEMA.Config | ScheduleFree.Config
"""Every optimizer an experiment may use, by `kind`."""


def _check_groups(groups: Sequence[ParameterGroup], planned_steps: int) -> None:
    names = [group.name for group in groups]
    if len(set(names)) < len(names):
        raise SettingsError(f"parameter groups share a name: {names}")
    if not any(group.params for group in groups):
        raise SettingsError("there is nothing to train: every parameter is frozen")
    if planned_steps < 1:
        raise SettingsError(f"planned_steps is {planned_steps}; a run needs at least one step")


def _copied(state: Any) -> Any:
    """The same nesting with every tensor cloned."""
    if isinstance(state, Tensor):
        return state.clone()
    if isinstance(state, Mapping):
        return {key: _copied(value) for key, value in state.items()}
    if isinstance(state, list | tuple):
        return type(state)(_copied(value) for value in state)
    return state
