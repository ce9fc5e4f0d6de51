"""Constraints on training: multipliers that rise while a constraint is violated and fall while there is slack.

loss = objective + lambda * CE (+ mu * surplus of open words). Use, once per *optimiser* step, not per micro-batch:

1. warm-up: `geco.record_warmup(ce)` after each step, then `geco.finish_warmup()` sets tau;
2. afterwards: weigh the CE by `geco.multiplier`, and after the optimiser's step call `geco.step(ce, active)`.

Everything is a Python float, so `state_dict` is plain data and a resumed run goes on bit for bit.
"""

import logging
import math
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, PositiveFloat

from lexical_sae.utils.errors import DivergedError, SettingsError
from lexical_sae.utils.part import PartConfig, Shorthand

logger = logging.getLogger(__name__)

WARMUP_WINDOW = 50
"""tau is read from this many warm-up steps, the last ones."""
TYPICAL_VIOLATION = 0.1
"""The relative violation for which a dual step set per run is sized."""
FEASIBLE_WITHIN = 1.05
"""A cross-entropy up to this many times tau counts as feasible."""
BEATS_GUESSING = 0.999
"""And only below this share of what the best constant prediction has: a tau that guessing meets asks for nothing."""


class DualAscent:
    """A multiplier that follows a smoothed violation: `log m += step * EMA(violation)`, within `[lowest, clamp]`.

    The first violation is copied into the average, so the multiplier starts to move at once.
    """

    def __init__(
        self,
        name: str,
        *,
        step: float,
        smoothing: float,
        clamp: float,
        largest: float = math.inf,
        lowest: float | None = None,
    ) -> None:
        self.name, self.step_size, self.smoothing, self.clamp, self.largest = name, step, smoothing, clamp, largest
        self.lowest = -clamp if lowest is None else max(-clamp, lowest)
        """log m does not fall below this; minus the clamp if not given, or if that is higher."""
        self.log_multiplier = 0.0
        self.violation: float | None = None
        """The smoothed violation; None before the first step."""

    @property
    def multiplier(self) -> float:
        """The factor of the constrained loss; 1 at the start."""
        return math.exp(self.log_multiplier)

    @property
    def is_on_clamp(self) -> bool:
        """Whether the multiplier would go further if it could: above, the constraint is out of reach; below, idle."""
        return self.log_multiplier >= self.clamp or self.log_multiplier <= -self.clamp

    def ascend(self, violation: float) -> None:
        """Take in one violation, positive if the constraint is broken."""
        if not math.isfinite(violation):
            raise DivergedError(f"the violation of {self.name} became {violation}; lower the learning rates")
        violation = min(self.largest, max(-self.largest, violation))
        kept = 0.0 if self.violation is None else 1 - self.smoothing
        self.violation = kept * (self.violation or 0.0) + (1 - kept) * violation
        was_on_clamp = self.is_on_clamp
        self.log_multiplier += self.step_size * self.violation
        self.log_multiplier = min(self.clamp, max(self.lowest, self.log_multiplier))
        if self.is_on_clamp and not was_on_clamp:
            verdict = "cannot be met as things are" if self.log_multiplier > 0 else "binds nothing"
            logger.warning("%s sits on its clamp at %.3g: the constraint %s", self.name, self.multiplier, verdict)

    def state_dict(self) -> dict[str, Any]:
        """All that changes over a run, as plain data."""
        return {"log_multiplier": self.log_multiplier, "violation": self.violation}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.log_multiplier, self.violation = state["log_multiplier"], state["violation"]


def per_run(
    name: str,
    *,
    total_steps: int,
    change_per_run: float,
    smoothing: float,
    clamp: float,
    lowest: float | None = None,
) -> DualAscent:
    """Dual ascent on a relative violation whose step is sized by the run.

    A constant violation of a tenth moves log m by `change_per_run` over `total_steps`, however many those are. A single
    violation counts as at most one, so that the first steps of a phase do not throw the multiplier to its clamp.
    """
    steps = max(1, total_steps)
    horizon = max(1.0, smoothing * steps)
    step = change_per_run / (TYPICAL_VIOLATION * steps)
    return DualAscent(name, step=step, smoothing=2 / (horizon + 1), clamp=clamp, largest=1.0, lowest=lowest)


class _TauConfig(PartConfig):
    """Where the level of cross-entropy comes from that must be kept."""

    tau_ce: PositiveFloat | None = None
    """Cross-entropy to keep, whatever the warm-up reached; null takes it from there."""
    sparsity_aware: bool = False
    """Whether tau is relaxed, up to half, while more words are active than `training.active_target`."""
    clamp: PositiveFloat = 5.0
    """log lambda stays between minus and plus this."""


class Constraint:
    """What is weighed by a multiplier that follows its violation."""

    def __init__(self, dual: DualAscent, active_target: float) -> None:
        self.dual, self.active_target = dual, active_target

    @property
    def multiplier(self) -> float:
        """The factor of what is constrained; 1 until the first step."""
        return self.dual.multiplier

    @property
    def violation(self) -> float | None:
        """The smoothed violation that the multiplier follows; None before the first step."""
        return self.dual.violation

    @property
    def is_on_clamp(self) -> bool:
        """Whether the multiplier has nowhere further to go."""
        return self.dual.is_on_clamp


class GECOController(Constraint):
    """Keeps the cross-entropy at tau while the circuit objective is minimised.

    Built by `Config`, the papers' form: an absolute violation, and a step of `2 / (steps_per_epoch + 1)`, which is also
    the smoothing. Or by `RelativeConfig`: the violation relative to tau, and a step sized by the run. The papers' form
    hardly moves lambda: a violation of 0.1 adds 0.2 to log lambda in an epoch.
    """

    REFERENCE: ClassVar = "Rezende & Viola 2018, arXiv:1810.00597"

    class Config(_TauConfig):
        kind: Literal["geco"] = "geco"

        def build(self, *, steps_per_epoch: int, total_steps: int, active_target: float) -> "GECOController":
            del total_steps
            eta = 2 / (max(1, steps_per_epoch) + 1)
            dual = DualAscent("GECO's lambda", step=eta, smoothing=eta, clamp=self.clamp)
            return GECOController(self, dual, active_target, is_relative=False)

    class RelativeConfig(_TauConfig):
        kind: Literal["relative_geco"] = "relative_geco"
        change_per_run: PositiveFloat = 3.0
        """How far log lambda moves over the constrained phase if the cross-entropy is always a tenth above tau."""
        smoothing: float = Field(default=0.02, ge=0, le=1)
        """Share of the constrained phase over which the violation is averaged."""
        least: PositiveFloat = 1.0
        """lambda never falls below this. tau comes from an early part of a short run; a lambda that follows the slack
        down to nothing would stop the task from being learned there."""

        def build(self, *, steps_per_epoch: int, total_steps: int, active_target: float) -> "GECOController":
            del steps_per_epoch
            dual = per_run(
                "GECO's lambda",
                total_steps=total_steps,
                change_per_run=self.change_per_run,
                smoothing=self.smoothing,
                clamp=self.clamp,
                lowest=math.log(self.least),
            )
            return GECOController(self, dual, active_target, is_relative=True)

    def __init__(self, config: _TauConfig, dual: DualAscent, active_target: float, *, is_relative: bool) -> None:
        super().__init__(dual, active_target)
        self.config, self.is_relative = config, is_relative
        self.warmup: list[float] = []
        self.tau: float | None = None

    def record_warmup(self, ce: float) -> None:
        """Note the cross-entropy of a warm-up step, with the label smoothing that the constrained steps will have."""
        self.warmup = [*self.warmup, float(ce)][-WARMUP_WINDOW:]

    def finish_warmup(self, ce_level: float | None = None) -> float:
        """Set and return tau: the override, or the given level (see `ce_at_accuracy`), or the warm-up's first quartile.

        Fewer than four warm-up steps have no quartile: their mean is taken, with a warning. Without any, an error is
        raised.
        """
        if self.config.tau_ce is not None:
            self.tau = self.config.tau_ce
        elif ce_level is not None:
            self.tau = float(ce_level)
        elif not self.warmup:
            raise SettingsError(
                "GECO saw no warm-up step to take tau from: raise training.warmup_fraction, or training.max_epochs "
                "where the texts are few, or set tau_ce of the controller"
            )
        elif len(self.warmup) < 4:
            self.tau = float(np.mean(self.warmup))
            logger.warning(
                "tau_ce %.4f is the mean of only %d warm-up steps, too few to be reliable; train for more epochs",
                self.tau,
                len(self.warmup),
            )
        else:
            self.tau = float(np.quantile(self.warmup, 0.25))
            logger.info("tau_ce %.4f from %d warm-up steps", self.tau, len(self.warmup))
        return self.tau

    def current_tau(self, active: float | None = None) -> float:
        """tau now: if sparsity-aware, `tau * min(1.5, 1 + 0.5 * min(1, ln max(1, active / target)))`."""
        if self.tau is None:
            raise SettingsError("GECO has no tau yet: call finish_warmup() before the first constrained step")
        if not self.config.sparsity_aware:
            return self.tau
        if active is None:
            raise SettingsError("a sparsity-aware tau needs the number of active words: call step(ce, active)")
        return self.tau * min(1.5, 1 + 0.5 * min(1.0, math.log(max(1.0, active / self.active_target))))

    def is_feasible(self, ce: float, guessing_ce: float) -> bool:
        """Whether an epoch with this cross-entropy may be selected; tau is not relaxed for it.

        `guessing_ce` is that of the best constant prediction for the same samples. A model in which no word is active
        cannot do better, so it is never feasible, whatever tau its warm-up left.
        """
        assert self.tau is not None, "feasibility is a matter of the constrained phase"
        return ce <= FEASIBLE_WITHIN * self.tau and beats_guessing(ce, guessing_ce)

    def step(self, ce: float, active: float | None = None) -> None:
        """One dual step, after one optimiser step: the mean cross-entropy and active words of all its micro-batches."""
        tau = self.current_tau(active)
        violation = float(ce) - tau
        # A model that fits the warm-up perfectly has tau near zero.
        self.dual.ascend(violation / max(tau, 1e-6) if self.is_relative else violation)

    def state_dict(self) -> dict[str, Any]:
        """All that changes over a run, as plain data."""
        return {"warmup": list(self.warmup), "tau": self.tau, **self.dual.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.warmup, self.tau = list(state["warmup"]), state["tau"]
        self.dual.load_state_dict(state)


class CountConstraint(Constraint):
    """Keeps the mean number of active words at most at a target, by `mu * losses.active_surplus`; it opens none.

    Dual ascent on `(active - target) / target`, smoothed. `active` is a mean per text (or position), counted exactly,
    so neither the size of a batch nor the number of processes matters. A ceiling, not an aim: the surplus is that of
    a batch, texts of one length are batched together, and batches of long texts are pushed down although the mean over
    all texts is below the target. Runs have ended 15 to 46 % below it.
    """

    class Config(PartConfig):
        kind: Literal["count"] = "count"
        change_per_run: PositiveFloat = 0.5
        """How far log mu moves over the run if always a tenth too many words are active."""
        smoothing: float = Field(default=0.02, ge=0, le=1)
        """Share of the run over which the count is averaged."""
        clamp: PositiveFloat = 5.0
        """log mu stays between minus and plus this."""

        def build(self, *, total_steps: int, active_target: float) -> "CountConstraint":
            dual = per_run(
                "the multiplier of active words",
                total_steps=total_steps,
                change_per_run=self.change_per_run,
                smoothing=self.smoothing,
                clamp=self.clamp,
            )
            return CountConstraint(dual, active_target)

    def step(self, active: float) -> None:
        """One dual step, after one optimiser step: the mean number of active words of all its micro-batches."""
        self.dual.ascend((float(active) - self.active_target) / self.active_target)

    def state_dict(self) -> dict[str, Any]:
        """All that changes over a run, as plain data."""
        return self.dual.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.dual.load_state_dict(state)


ControllerConfig = Annotated[
    GECOController.Config | GECOController.RelativeConfig, Field(discriminator="kind"), Shorthand
]


def beats_guessing(ce: float, guessing_ce: float) -> bool:
    """Whether a cross-entropy is below that of the best constant prediction by more than rounding."""
    return ce < BEATS_GUESSING * guessing_ce


def ce_at_accuracy(target_accuracy: float, validations: Iterable[tuple[float, float]]) -> float | None:
    """Cross-entropy of the first warm-up validation, given as `(accuracy, ce)`, that reaches the accuracy.

    None, with a warning, if none does: `finish_warmup(None)` then takes the quartile.
    """
    best = -math.inf
    for accuracy, ce in validations:
        if accuracy >= target_accuracy:
            return ce
        best = max(best, accuracy)
    logger.warning(
        "target_accuracy %.3f was not reached in warm-up (best %.3f): tau_ce is taken from the warm-up's cross-entropy",
        target_accuracy,
        best,
    )
    return None
