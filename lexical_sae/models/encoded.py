"""What a model makes of a batch before any head decides: the activation of words, at positions or of documents."""

from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor

from lexical_sae.models.layers.activation import GateOutput


@dataclass(frozen=True)
class EncodedSequence:
    """Words per position, with the gate's output; padding is zero everywhere."""

    sparse_sequence: Float[Tensor, "B L V"]
    gate: GateOutput
    logits: Float[Tensor, "B L V"]
    """What the gate was given; -inf where a word cannot open."""


@dataclass(frozen=True)
class EncodedDocument:
    """Words per document or chosen position, with the gate's output for the greatest logit of each word."""

    sparse_vector: Float[Tensor, "B K"]
    gate: GateOutput
    logits: Float[Tensor, "B K"]
    """Greatest logit of each word; -inf where it cannot open."""
    words: Int[Tensor, " K"] | None = None
    """The dimension of each column, where only live ones have a column; None where all have."""
    in_reach: Bool[Tensor, " V"] | None = None
    """Dimensions that a token of the batch may open, with a column or without; None without a neighbourhood."""
