"""Anchored: the default. Literal words, a table fitted without context, and few, counted shifts by context."""

from splade.circuits.geco import CountConstraint
from splade.config.schema import Recipe
from splade.models.config import ModelConfig
from splade.models.layers.activation import PresenceGate
from splade.models.layers.context_shift import ContextShift
from splade.models.layers.literal_words import LiteralWords
from splade.models.layers.pooling import SumPool
from splade.models.layers.saturation import Identity
from splade.models.table_head import TableHead
from splade.training.independence import Independence
from splade.training.optim import AdamWEMA
from splade.training.settings import TrainingConfig
from splade.training.tutor import Tutor


def anchored() -> Recipe:
    """The features of a text are its words; a row each, and context may only move what the row says, and materially."""
    model = ModelConfig(
        literal=LiteralWords.Config(),
        context=ContextShift.Config(),
        gate=PresenceGate.Config(),
        saturation=Identity.Config(),
        pool=SumPool.Config(),
        head=TableHead.Config(),
    )
    training = TrainingConfig(
        max_epochs=2,
        active_target=2.0,
        count=CountConstraint.Config(),
        negations=0.3,
        independence=Independence.Config(),
        tutor=Tutor.Config(imitation=1.0),
        encoder_dropout=0.0,
        learning_rate=1e-4,
        head_rate=10.0,
        label_smoothing=0.05,
        optimiser=AdamWEMA.Config(schedule="linear", ema=None),
    )
    return Recipe(model=model, training=training)
