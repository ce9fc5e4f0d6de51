"""LTT, Lexical Terminal Transcoder: the third generation."""

from splade.config.schema import Recipe
from splade.models.config import ModelConfig
from splade.models.layers.activation import GatedJumpReLU
from splade.models.layers.saturation import Identity


def transcoder() -> Recipe:
    """Binary gate with a sigmoid surrogate, strengths uncompressed."""
    return Recipe(model=ModelConfig(gate=GatedJumpReLU.Config(), saturation=Identity.Config()))
