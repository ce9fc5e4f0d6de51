"""CIS, Circuit-Integrated SPLADE: the first generation."""

from splade.circuits.balances import Uncertainty
from splade.circuits.geco import GECOController
from splade.circuits.objective import Objective
from splade.circuits.terms import CompletenessCE, DFFlops, Hoyer, SeparationCosine
from splade.config.schema import Recipe
from splade.models.config import ModelConfig
from splade.models.layers.activation import DReLU
from splade.models.layers.saturation import Log1p
from splade.training.optim import AdamWEMA
from splade.training.settings import TrainingConfig


def cis() -> Recipe:
    """Shifted ReLU gate, log saturation; Hoyer and DF-FLOPS sparsity, balanced by uncertainty."""
    terms = (
        CompletenessCE.Config(centred=False, of_prediction=True),
        SeparationCosine.Config(centred=False),
        Hoyer.Config(centred=False),
        DFFlops.Config(),
    )
    training = TrainingConfig(
        calibrated_start=2.0,
        learning_rate=None,
        head_rate=1.0,
        gate_rate=1.0,
        freeze_embeddings=False,
        gradient_centralization=True,
        optimiser=AdamWEMA.Config(),
        controller=GECOController.Config(),
        objective=Objective.Config(terms=terms, balance=Uncertainty.Config()),
    )
    return Recipe(model=ModelConfig(gate=DReLU.Config(offset=True), saturation=Log1p.Config()), training=training)
