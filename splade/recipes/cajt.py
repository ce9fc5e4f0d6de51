"""CAJT, Circuit-Anchored JumpReLU Transcoder: the fourth generation."""

from splade.circuits.balances import Sum
from splade.circuits.geco import GECOController
from splade.circuits.objective import Objective
from splade.circuits.terms import CompletenessKL, FrequencyPenalty, GateL0, SeparationContrastive
from splade.config.schema import Recipe
from splade.models.config import ModelConfig
from splade.models.layers.activation import JumpReLUGate
from splade.models.layers.pooling import AttentionPool
from splade.models.layers.saturation import Identity
from splade.training.optim import ScheduleFree
from splade.training.settings import TrainingConfig


def cajt() -> Recipe:
    """JumpReLU gate with positive thresholds, strengths uncompressed; KL and contrast, trained without a schedule."""
    terms = (
        CompletenessKL.Config(centred=False),
        SeparationContrastive.Config(centred=False),
        GateL0.Config(),
        FrequencyPenalty.Config(),
    )
    training = TrainingConfig(
        calibrated_start=2.0,
        learning_rate=3e-4,
        head_rate=1.0,
        gate_rate=5.0,
        freeze_embeddings=False,
        gradient_centralization=True,
        optimiser=ScheduleFree.Config(),
        controller=GECOController.Config(),
        objective=Objective.Config(terms=terms, balance=Sum.Config()),
    )
    return Recipe(
        model=ModelConfig(gate=JumpReLUGate.Config(offset=True), saturation=Identity.Config()), training=training
    )


def cajt_attention() -> Recipe:
    """CAJT with learned pooling."""
    recipe = cajt()
    return recipe.model_copy(update={"model": recipe.model.model_copy(update={"pool": AttentionPool.Config()})})
