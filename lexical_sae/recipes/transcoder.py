"""Transcoder: the third generation, a gate with full strength above its threshold."""

from lexical_sae.circuits.balances import Weighted
from lexical_sae.circuits.geco import GECOController
from lexical_sae.circuits.objective import Objective
from lexical_sae.circuits.terms import CompletenessCE, GateL0, SeparationCosine
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.layers.activation import GatedJumpReLU
from lexical_sae.models.layers.saturation import Identity
from lexical_sae.recipes.lexical_sae import lexical_sae
from lexical_sae.recipes.recipe import Recipe


def transcoder() -> Recipe:
    """Gated JumpReLU, strengths uncompressed; a penalty on open gates, terms weighted. Trained as `lexical_sae` is."""
    terms = (
        CompletenessCE.Config(centered=False, of_prediction=True),
        SeparationCosine.Config(centered=False),
        GateL0.Config(),
    )
    changed = {
        "controller": GECOController.Config(),
        "objective": Objective.Config(terms=terms, balance=Weighted.Config()),
    }
    return Recipe(
        model=ModelConfig(gate=GatedJumpReLU.Config(offset=True), saturation=Identity.Config()),
        training=lexical_sae().training.model_copy(update=changed),
    )
