"""Transcoder: the third generation, a gate with full strength above its threshold."""

from lexical_sae.circuits.balances import Weighted
from lexical_sae.circuits.geco import GECOController
from lexical_sae.circuits.objective import Objective
from lexical_sae.circuits.terms import CompletenessCE, GateL0, SeparationCosine
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.layers.activation import GatedJumpReLU
from lexical_sae.models.layers.saturation import Identity
from lexical_sae.recipes.recipe import Recipe
from lexical_sae.training.optim import AdamWEMA
from lexical_sae.training.settings import TrainingConfig


def transcoder() -> Recipe:
    """Gated JumpReLU, strengths uncompressed; a penalty on open gates, terms weighted."""
    terms = (
        CompletenessCE.Config(centered=False, of_prediction=True),
        SeparationCosine.Config(centered=False),
        GateL0.Config(),
    )
    training = TrainingConfig(
        calibrated_start=2.0,
        learning_rate=None,
        head_rate=1.0,
        gate_rate=5.0,
        freeze_embeddings=False,
        gradient_centralization=True,
        optimizer=AdamWEMA.Config(),
        controller=GECOController.Config(),
        objective=Objective.Config(terms=terms, balance=Weighted.Config()),
    )
    return Recipe(
        model=ModelConfig(gate=GatedJumpReLU.Config(offset=True), saturation=Identity.Config()), training=training
    )
