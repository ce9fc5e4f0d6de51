"""What a checkpoint of training holds: all that changes over a run, and a digest of what it learns from."""

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lexical_sae.training.resuming.random_state import random_state, restore_random_state
from lexical_sae.training.tasks import Task
from lexical_sae.utils.errors import SettingsError

if TYPE_CHECKING:
    from lexical_sae.training.loop import Trainer


def digest_of(*tasks: Task) -> str:
    """A hash of what tasks learn from, in order."""
    found = hashlib.sha256()
    for task in tasks:
        for part in task.content():
            found.update(part)
    return found.hexdigest()


def state_of(trainer: "Trainer") -> dict[str, Any]:
    """Everything that changes over a run."""
    count = trainer.criterion.count
    return {
        "step": trainer.step,
        "model": trainer.model.state_dict(),
        "criterion": trainer.criterion.state_dict(),
        "geco": trainer.geco.state_dict(),
        "count": count.state_dict() if count is not None else None,
        "optimizer": trainer.optimizer.state_dict(),
        "selection": trainer.selection.state_dict(),
        "silent_steps": trainer.silence.steps,
        "best_weights": trainer.best_weights,
        "warmup_validations": [list(pair) for pair in trainer.warmup_validations],
        "micro_batch": trainer.steps.micro.size,
        "random": random_state(),
        "data": trainer.data_digest,
    }


def require_same_data(trainer: "Trainer", state: Mapping[str, Any]) -> None:
    """Refuse a state of a run that learned from other data."""
    if state["data"] != trainer.data_digest:
        raise SettingsError(
            "the data is not what the run began with, so rows it learned from may be tested on; restore the data, "
            "or start a new run in another folder (--out)"
        )


def restore(trainer: "Trainer", state: Mapping[str, Any]) -> None:
    """Put back what `state_of` took; the trainer has an optimiser already."""
    trainer.steps.done = state["step"]
    trainer.model.load_state_dict(state["model"])
    trainer.criterion.load_state_dict(state["criterion"])
    trainer.optimizer.load_state_dict(state["optimizer"])
    trainer.geco.load_state_dict(state["geco"])
    if trainer.criterion.count is not None:
        trainer.criterion.count.load_state_dict(state["count"])
    trainer.selection.load_state_dict(state["selection"])
    # Older checkpoints lack it.
    trainer.silence.steps = state.get("silent_steps", 0)
    trainer.best_weights = dict(state["best_weights"])
    trainer.warmup_validations = [(accuracy, ce) for accuracy, ce in state["warmup_validations"]]
    trainer.steps.micro.size = state["micro_batch"]
    restore_random_state(state["random"])
