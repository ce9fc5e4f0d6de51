"""CIS, Circuit-Integrated SPLADE: the first generation."""

from splade.config.schema import Recipe
from splade.models.config import ModelConfig
from splade.models.layers.activation import DReLU
from splade.models.layers.saturation import Log1p


def cis() -> Recipe:
    """Shifted ReLU gate and log saturation, max-pooled, ReLU head."""
    return Recipe(model=ModelConfig(gate=DReLU.Config(), saturation=Log1p.Config()))
