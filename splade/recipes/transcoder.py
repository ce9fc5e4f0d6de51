"""Transcoder: the third generation, a gate with full strength above its threshold."""

from splade.circuits.balances import Weighted
from splade.circuits.geco import GECOController
from splade.circuits.objective import Objective
from splade.circuits.terms import CompletenessCE, GateL0, SeparationCosine
from splade.config.schema import Recipe
from splade.models.config import ModelConfig
from splade.models.layers.activation import GatedJumpReLU
from splade.models.layers.saturation import Identity
from splade.training.optim import AdamWEMA
from splade.training.settings import TrainingConfig


def transcoder() -> Recipe:
    """Gated JumpReLU, strengths uncompressed; a penalty on open gates, terms weighted."""
    terms = (
        CompletenessCE.Config(centred=False, of_prediction=True),
        SeparationCosine.Config(centred=False),
        GateL0.Config(),
    )
    training = TrainingConfig(
        calibrated_start=2.0,
        learning_rate=None,
        head_rate=1.0,
        gate_rate=5.0,
        freeze_embeddings=False,
        gradient_centralization=True,
        optimiser=AdamWEMA.Config(),
        controller=GECOController.Config(),
        objective=Objective.Config(terms=terms, balance=Weighted.Config()),
    )
    return Recipe(
        model=ModelConfig(gate=GatedJumpReLU.Config(offset=True), saturation=Identity.Config()), training=training
    )
