"""Lexical-SAE: the second generation, one model for classes and tags."""

from lexical_sae.circuits.balances import Sum
from lexical_sae.circuits.geco import GECOController
from lexical_sae.circuits.objective import Objective
from lexical_sae.circuits.terms import L1L0, CompletenessCE, SeparationCosine
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.layers.activation import DReLU
from lexical_sae.models.layers.saturation import Log1p
from lexical_sae.recipes.recipe import Recipe
from lexical_sae.training.optim import AdamWEMA
from lexical_sae.training.settings import TrainingConfig


def lexical_sae() -> Recipe:
    """Shifted ReLU gate that learns five times faster, log saturation; L1 + L0 sparsity, a sparsity-aware tau."""
    terms = (
        CompletenessCE.Config(centered=False, of_prediction=True),
        SeparationCosine.Config(centered=False),
        L1L0.Config(),
    )
    training = TrainingConfig(
        calibrated_start=2.0,
        learning_rate=None,
        head_rate=1.0,
        gate_rate=5.0,
        freeze_embeddings=False,
        gradient_centralization=True,
        optimizer=AdamWEMA.Config(),
        controller=GECOController.Config(sparsity_aware=True),
        objective=Objective.Config(terms=terms, balance=Sum.Config()),
    )
    return Recipe(model=ModelConfig(gate=DReLU.Config(offset=True), saturation=Log1p.Config()), training=training)
