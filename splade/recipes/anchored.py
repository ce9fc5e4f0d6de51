"""Anchored: the default. A calibrated start, a sparse kernel, and words masked in training."""

from splade.config.schema import Recipe
from splade.models.config import ModelConfig
from splade.models.layers.activation import JumpReLUGate
from splade.models.layers.masking import WordMasking
from splade.models.layers.saturation import Log1p


def anchored() -> Recipe:
    """JumpReLU with a calibrated offset per word and a sparse kernel; log saturation; words masked in training."""
    gate = JumpReLUGate.Config(initial_threshold=0.1, kernel="rectangle", offset=True)
    return Recipe(model=ModelConfig(gate=gate, saturation=Log1p.Config(), masking=WordMasking.Config()))
