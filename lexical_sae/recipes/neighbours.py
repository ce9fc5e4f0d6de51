"""Neighbours: words that can only open where they, or words near to them, stand in the text. The taggers' default."""

from lexical_sae.circuits.balances import Weighted
from lexical_sae.circuits.geco import CountConstraint, GECOController
from lexical_sae.circuits.objective import Objective
from lexical_sae.circuits.terms import CompletenessKL, OwnWords, SeparationContrastive
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.heads import ReluHead
from lexical_sae.models.layers.activation import JumpReLUGate
from lexical_sae.models.layers.masking import WordMasking
from lexical_sae.models.layers.neighbourhood import Neighbourhood
from lexical_sae.models.layers.saturation import Log1p
from lexical_sae.recipes.recipe import Recipe
from lexical_sae.training.loss.auxiliary_head import AuxiliaryHead
from lexical_sae.training.optim import AdamWEMA
from lexical_sae.training.settings import TrainingConfig


def neighbours() -> Recipe:
    """Neighbourhoods tie names to the text; an auxiliary head helps it learn; the number of words is a constraint."""
    model = ModelConfig(
        neighbourhood=Neighbourhood.Config(words_per_token=16, most_cut_words=8192),
        gate=JumpReLUGate.Config(initial_threshold=0.1, kernel="rectangle", offset=True),
        saturation=Log1p.Config(),
        masking=WordMasking.Config(low=0.05, high=0.2),
        head=ReluHead.Config(start_from_embeddings=True),
    )
    training = TrainingConfig(
        active_target=50.0,
        calibrated_start=1.0,
        shared_word_vectors=True,
        auxiliary=AuxiliaryHead.Config(),
        encoder_dropout=0.0,
        learning_rate=2e-4,
        head_rate=10.0,
        gate_rate=50.0,
        count=CountConstraint.Config(),
        label_smoothing=0.1,
        optimizer=AdamWEMA.Config(schedule="linear", ema=None),
        controller=GECOController.RelativeConfig(),
        objective=Objective.Config(
            terms=(
                OwnWords.Config(weight=0.1, margin=0.3, in_warmup=True),
                CompletenessKL.Config(weight=0.1),
                SeparationContrastive.Config(weight=0.1),
            ),
            balance=Weighted.Config(),
        ),
    )
    return Recipe(model=model, training=training)
