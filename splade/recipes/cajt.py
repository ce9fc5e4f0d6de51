"""CAJT, Circuit-Anchored JumpReLU Transcoder: the fourth generation."""

from splade.config.schema import Recipe
from splade.models.config import ModelConfig
from splade.models.layers.activation import JumpReLUGate
from splade.models.layers.pooling import AttentionPool
from splade.models.layers.saturation import Identity


def cajt() -> Recipe:
    """JumpReLU gate with positive thresholds, strengths uncompressed."""
    return Recipe(model=ModelConfig(gate=JumpReLUGate.Config(), saturation=Identity.Config()))


def cajt_attention() -> Recipe:
    """CAJT with learned pooling."""
    recipe = cajt()
    return recipe.model_copy(update={"model": recipe.model.model_copy(update={"pool": AttentionPool.Config()})})
