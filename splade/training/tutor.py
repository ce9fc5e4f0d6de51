"""The tutor: a plain classifier on the encoder's own states, there while a model learns and gone afterwards.

Words are a narrow way into an encoder: in each text only the few that are open learn, and each only through its own
row of the decoder. The tutor learns the task at full width, as a dense classifier does, and two things come of it:
the encoder is shaped as fast as it would be without words, and the words have more to learn from than a label.
It never decides: the trained model is the same with or without it.
"""

from jaxtyping import Float, Int
from pydantic import Field, NonNegativeFloat, PositiveFloat
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout

from splade.circuits.losses import Scalar, completeness_kl
from splade.part import PartConfig


class Tutor(nn.Module):
    """One linear layer on the encoder's states that words are read from: their mean, or a tagged position's."""

    class Config(PartConfig):
        weight: PositiveFloat = 1.0
        """How much the tutor's own cross-entropy counts, which is what shapes the encoder."""
        imitation: NonNegativeFloat = 0.5
        """How much the words are asked to decide as the tutor does: KL(tutor || words), which the tutor never feels."""
        dropout: float = Field(default=0.1, ge=0, lt=1)
        """Share of the encoder state that the tutor does not see, at random."""

        def build(self, width: int, num_labels: int) -> "Tutor":
            return Tutor(self, width, num_labels)

    def __init__(self, config: Config, width: int, num_labels: int) -> None:
        super().__init__()
        self.config = config
        self.layer = nn.Linear(width, num_labels)

    def forward(
        self,
        states: Float[Tensor, "N E"],
        word_logits: Float[Tensor, "N C"],
        labels: Int[Tensor, " N"],
        label_smoothing: float = 0.0,
    ) -> Scalar:
        """What the tutor adds to the loss of samples that the words decided on."""
        logits = self.layer(dropout(states, self.config.dropout, self.training))
        own = cross_entropy(logits, labels, label_smoothing=label_smoothing)
        return self.config.weight * own + self.config.imitation * completeness_kl(logits, word_logits)
