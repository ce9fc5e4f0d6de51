"""CIS, Circuit-Integrated SPLADE: the first generation."""

from lexical_sae.circuits.balances import Uncertainty
from lexical_sae.circuits.geco import GECOController
from lexical_sae.circuits.objective import Objective
from lexical_sae.circuits.terms import CompletenessCE, DFFlops, Hoyer, SeparationCosine
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.layers.activation import DReLU
from lexical_sae.models.layers.saturation import Log1p
from lexical_sae.recipes.recipe import Recipe
from lexical_sae.training.optim import AdamWEMA
from lexical_sae.training.settings import TrainingConfig


def cis() -> Recipe:
    """Shifted ReLU gate, log saturation; Hoyer and DF-FLOPS sparsity, balanced by uncertainty."""
    terms = (
        CompletenessCE.Config(centered=False, of_prediction=True),
        SeparationCosine.Config(centered=False),
        Hoyer.Config(centered=False),
        DFFlops.Config(),
    )
    training = TrainingConfig(
        calibrated_start=2.0,
        learning_rate=None,
        head_rate=1.0,
        gate_rate=1.0,
        freeze_embeddings=False,
        gradient_centralization=True,
        optimizer=AdamWEMA.Config(),
        controller=GECOController.Config(),
        objective=Objective.Config(terms=terms, balance=Uncertainty.Config()),
    )
    return Recipe(model=ModelConfig(gate=DReLU.Config(offset=True), saturation=Log1p.Config()), training=training)
