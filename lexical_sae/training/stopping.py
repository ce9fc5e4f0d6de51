"""Which epoch to keep, and when to stop.

Feasible epochs come first, among them the lowest circuit objective; without a feasible one, the lowest cross-entropy;
reports then say that the constraint was not kept. Epochs of the warm-up are never chosen while there is another: they
come from before circuits were asked for.

Where there is a table of words, the epoch that is right on most validation texts is kept, if that is more than the
table alone by over one standard error of the difference; otherwise the table alone is the model. Cross-entropy cannot
tell: on few texts context lowers it and the accuracy too.
"""

from dataclasses import asdict, dataclass
from typing import Any

from lexical_sae.utils.errors import TrainingError

SILENT_STEPS = 10
"""Optimiser steps in a row without any active word that end a run: one such batch may be chance."""


class Interrupted(Exception):
    """Somebody asked the run to stop; its state was saved."""


class StoppedBeforeSaving(Interrupted):
    """Somebody asked the run to stop before there was anything to save."""


class NoWordActive(TrainingError, RuntimeError):
    """Every word has closed, so every text gets the same answer and none teaches the encoder anything."""


@dataclass(frozen=True)
class EpochScores:
    """What validation says of an epoch's averaged weights."""

    epoch: int
    ce: float
    accuracy: float
    active_words: float
    circuit_score: float
    """Weighted sum of the circuit terms, or the cross-entropy when none is asked for."""
    is_constrained: bool
    """Whether any of its steps asked for circuits."""
    is_feasible: bool
    """Whether its cross-entropy kept to the constraint, and is below that of guessing."""
    guessing_ce: float | None = None
    """Cross-entropy of the best constant prediction for the validation's labels; older checkpoints lack it."""
    gain: float | None = None
    """Accuracy beyond that of the table alone; None where there is no context, or no table."""
    gain_error: float | None = None
    """Its standard error: both decide on the same texts."""

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """Smaller is better."""
        if self.gain is not None and self.gain_error is not None:
            # Of two epochs without a gain beyond noise the first is kept: the table alone.
            return False, False, -self.gain if self.gain > self.gain_error else 0.0
        # Nothing was asked of circuits in the warm-up, so they tell nothing about it.
        preference = self.circuit_score if self.is_constrained and self.is_feasible else self.ce
        return not self.is_constrained, not self.is_feasible, preference


class Silence:
    """How many optimiser steps in a row had no active word."""

    def __init__(self) -> None:
        self.steps = 0

    def take(self, active: float) -> bool:
        """Whether, with a step of so many active words per sample, it has lasted too long."""
        self.steps = 0 if active else self.steps + 1
        return self.steps >= SILENT_STEPS


class Selection:
    """The best epoch so far, and how long ago it was."""

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.best: EpochScores | None = None
        self.without_improvement = 0

    def take(self, scores: EpochScores) -> bool:
        """Whether this epoch is the best so far. The warm-up does not count against patience."""
        if self.best is None or scores.rank < self.best.rank:
            self.best, self.without_improvement = scores, 0
            return True
        self.without_improvement += scores.is_constrained
        return False

    @property
    def is_over(self) -> bool:
        """Whether patience has run out."""
        return self.without_improvement >= self.patience

    def state_dict(self) -> dict[str, Any]:
        """All that changes over a run, as plain data."""
        best = None if self.best is None else asdict(self.best)
        return {"best": best, "without_improvement": self.without_improvement}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.best = None if state["best"] is None else EpochScores(**state["best"])
        self.without_improvement = state["without_improvement"]
