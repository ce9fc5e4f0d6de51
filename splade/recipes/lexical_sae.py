"""Lexical-SAE: the second generation, which also tags."""

from splade.config.schema import Recipe
from splade.models.config import ModelConfig
from splade.models.layers.activation import DReLU
from splade.models.layers.saturation import Log1p


def lexical_sae() -> Recipe:
    """The parts of CIS, for documents and positions."""
    return Recipe(model=ModelConfig(gate=DReLU.Config(), saturation=Log1p.Config()))
