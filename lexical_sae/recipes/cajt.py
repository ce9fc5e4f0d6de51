"""CAJT, Circuit-Anchored JumpReLU Transcoder: the fourth generation."""

from lexical_sae.circuits.balances import Sum
from lexical_sae.circuits.geco import GECOController
from lexical_sae.circuits.objective import Objective
from lexical_sae.circuits.terms import CompletenessKL, FrequencyPenalty, GateL0, SeparationContrastive
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.layers.activation import JumpReLUGate
from lexical_sae.models.layers.saturation import Identity
from lexical_sae.recipes.recipe import Recipe
from lexical_sae.training.optim import ScheduleFree
from lexical_sae.training.settings import TrainingConfig


def cajt() -> Recipe:
    """JumpReLU gate with positive thresholds, strengths uncompressed; KL and contrast, trained without a schedule."""
    terms = (
        CompletenessKL.Config(centered=False),
        SeparationContrastive.Config(centered=False),
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
        optimizer=ScheduleFree.Config(),
        controller=GECOController.Config(),
        objective=Objective.Config(terms=terms, balance=Sum.Config()),
    )
    return Recipe(
        model=ModelConfig(gate=JumpReLUGate.Config(offset=True), saturation=Identity.Config()), training=training
    )
