"""The auxiliary head: a plain classifier on the encoder's own states, there while a model learns and gone afterwards.

Words are a narrow way into an encoder: in each text only the few that are open learn, and each only through its own
row of the decoder. The auxiliary head learns the task at full width, as a dense classifier does, and two things come
of it: the encoder is shaped as fast as it would be without words, and the words have more to learn from than a label.
It never decides: the trained model is the same with or without it.
"""

import torch
from jaxtyping import Float
from pydantic import Field, NonNegativeFloat, PositiveFloat
from torch import Tensor, nn
from torch.nn.functional import dropout

from lexical_sae.circuits.losses import Scalar
from lexical_sae.outputs import CLASSES, OutputKind
from lexical_sae.outputs.kind import Targets
from lexical_sae.utils.part import PartConfig


class AuxiliaryHead(nn.Module):
    """One linear layer on the encoder's states: their mean, or a tagged position's."""

    centre: Float[Tensor, " E"]
    """What is taken from the states, and below, what they are divided by: in these units the layer learns."""
    spread: Float[Tensor, " E"]

    class Config(PartConfig):
        weight: PositiveFloat = 1.0
        """How much the auxiliary head's own cross-entropy counts, which is what shapes the encoder."""
        imitation: NonNegativeFloat = 0.5
        """Weight of KL(auxiliary head || words), which trains the words only."""
        dropout: float = Field(default=0.1, ge=0, lt=1)
        """Share of the encoder state that the auxiliary head does not see, at random."""
        started_rate: PositiveFloat = 1.0
        """Its learning rate where it begins at a regression (`preparation.linear_start`), as a multiple of the
        encoder's: steps for a head that starts at random (`training.head_rate`) would throw the start away."""

        def build(self, width: int, num_labels: int) -> "AuxiliaryHead":
            return AuxiliaryHead(self, width, num_labels)

    def __init__(self, config: Config, width: int, num_labels: int) -> None:
        super().__init__()
        self.config = config
        self.layer = nn.Linear(width, num_labels)
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("spread", torch.ones(width))

    def logits(self, states: Float[Tensor, "N E"]) -> Float[Tensor, "N C"]:
        """What the auxiliary head makes of some states."""
        # After centring, or what is dropped at random would change every logit.
        even = (states - self.centre) / self.spread
        return self.layer(dropout(even, self.config.dropout, self.training))

    def forward(
        self,
        states: Float[Tensor, "N E"],
        word_logits: Float[Tensor, "N C"],
        labels: Targets,
        label_smoothing: float = 0.0,
        weights: Float[Tensor, " N"] | None = None,
        output: OutputKind = CLASSES,
    ) -> Scalar:
        """What the auxiliary head adds to the loss of samples that the words decided on."""
        logits = self.logits(states)
        own = output.loss(logits, labels, weights, label_smoothing)
        return self.config.weight * own + self.config.imitation * output.imitation(logits, word_logits, weights)
