"""What a recipe is: settings for every part of the model and of its training."""

from pydantic import model_validator

from lexical_sae.models.config import ModelConfig
from lexical_sae.training.settings import TrainingConfig
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.part import PartConfig


class Recipe(PartConfig):
    """Everything a generation of the method fixes; an experiment file may override any field."""

    model: ModelConfig
    """The parts of the model."""
    training: TrainingConfig
    """How it is trained."""

    @model_validator(mode="after")
    def _can_be_calibrated(self) -> "Recipe":
        start, gate = self.training.calibrated_start, self.model.gate
        if start is not None and not gate.offset:
            raise SettingsError(
                f"training.calibrated_start {start} shifts the gate's offset, and model.gate {gate.kind!r} has none; "
                f"set model.gate: {{kind: {gate.kind}, offset: true}}, or training.calibrated_start: null"
            )
        return self
