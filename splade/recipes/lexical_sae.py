"""Lexical-SAE: the second generation, one model for classes and tags."""

from splade.circuits.balances import Sum
from splade.circuits.geco import GECOController
from splade.circuits.objective import Objective
from splade.circuits.terms import L1L0, CompletenessCE, SeparationCosine
from splade.config.schema import Recipe
from splade.models.config import ModelConfig
from splade.models.layers.activation import DReLU
from splade.models.layers.saturation import Log1p
from splade.training.optim import AdamWEMA
from splade.training.settings import TrainingConfig


def lexical_sae() -> Recipe:
    """Shifted ReLU gate that learns five times faster, log saturation; L1 + L0 sparsity, a sparsity-aware tau."""
    terms = (
        CompletenessCE.Config(centred=False, of_prediction=True),
        SeparationCosine.Config(centred=False),
        L1L0.Config(),
    )
    training = TrainingConfig(
        calibrated_start=2.0,
        learning_rate=None,
        head_rate=1.0,
        gate_rate=5.0,
        freeze_embeddings=False,
        gradient_centralization=True,
        optimiser=AdamWEMA.Config(),
        controller=GECOController.Config(sparsity_aware=True),
        objective=Objective.Config(terms=terms, balance=Sum.Config()),
    )
    return Recipe(model=ModelConfig(gate=DReLU.Config(offset=True), saturation=Log1p.Config()), training=training)
