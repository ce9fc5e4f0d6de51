"""Anchored: the default. Literal words, a table fitted without context, and few, counted shifts by context."""

from lexical_sae.circuits.geco import CountConstraint
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.layers.activation import PresenceGate
from lexical_sae.models.layers.context_shift import ContextShift
from lexical_sae.models.layers.literal_words import LiteralWords
from lexical_sae.models.layers.pooling import SumPool
from lexical_sae.models.layers.saturation import Identity
from lexical_sae.models.table_head import TableHead
from lexical_sae.recipes.recipe import Recipe
from lexical_sae.training.loss.auxiliary_head import AuxiliaryHead
from lexical_sae.training.loss.independence import Independence
from lexical_sae.training.optim import AdamWEMA
from lexical_sae.training.settings import TrainingConfig


def anchored() -> Recipe:
    """The features of a text are its words, one row each; context may shift a row's values, and only materially."""
    model = ModelConfig(
        long_texts="whole",
        literal=LiteralWords.Config(),
        context=ContextShift.Config(),
        gate=PresenceGate.Config(),
        saturation=Identity.Config(),
        pool=SumPool.Config(),
        head=TableHead.Config(),
    )
    training = TrainingConfig(
        planned_steps=600,
        most_epochs=6,
        active_target=2.0,
        count=CountConstraint.Config(),
        negations=0.3,
        independence=Independence.Config(),
        auxiliary=AuxiliaryHead.Config(imitation=1.0),
        encoder_dropout=0.0,
        learning_rate=1e-4,
        head_rate=10.0,
        label_smoothing=0.05,
        optimizer=AdamWEMA.Config(schedule="linear", ema=None),
    )
    return Recipe(model=model, training=training)
