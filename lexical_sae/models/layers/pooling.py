"""Pooling: from words per position to words per document, and the cap on words per position."""

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from lexical_sae.models.circuit_state import largest_k_mask
from lexical_sae.utils.part import PartConfig
from lexical_sae.utils.precision import full_precision


class MaxPool(nn.Module):
    """Activation of a word in a document: its greatest activation at any real position."""

    pools_logits_first = True
    """Gates are non-decreasing and saturations too, so logits may be pooled before the gate."""

    class Config(PartConfig):
        kind: Literal["max"] = "max"

        def build(self, size: int) -> "MaxPool":
            del size
            return MaxPool()

    def forward(
        self, sparse_sequence: Float[Tensor, "B L V"], attention_mask: Bool[Tensor, "B L"]
    ) -> Float[Tensor, "B V"]:
        # Strengths are never negative, so zero at padding can tie but not win.
        return sparse_sequence.masked_fill(~attention_mask[..., None], 0.0).amax(1)


class SumPool(nn.Module):
    """The sum over real positions, for activations that are already shares of a document's."""

    pools_logits_first = False

    class Config(PartConfig):
        kind: Literal["sum"] = "sum"

        def build(self, size: int) -> "SumPool":
            del size
            return SumPool()

    def forward(
        self, sparse_sequence: Float[Tensor, "B L V"], attention_mask: Bool[Tensor, "B L"]
    ) -> Float[Tensor, "B V"]:
        return sparse_sequence.masked_fill(~attention_mask[..., None], 0.0).sum(1)


class AttentionPool(nn.Module):
    """Weighted mean over real positions, the weights a softmax of a learned score `u . s_l`."""

    pools_logits_first = False

    class Config(PartConfig):
        kind: Literal["attention"] = "attention"

        def build(self, size: int) -> "AttentionPool":
            return AttentionPool(size)

    def __init__(self, size: int) -> None:
        super().__init__()
        self.score = nn.Parameter(torch.zeros(size))

    @full_precision()
    def weights(
        self, sparse_sequence: Float[Tensor, "B L V"], attention_mask: Bool[Tensor, "B L"]
    ) -> Float[Tensor, "B L"]:
        """Share of each position; zero at padding, and everywhere in a text without tokens."""
        scores = (sparse_sequence @ self.score).masked_fill(~attention_mask, torch.finfo(sparse_sequence.dtype).min)
        return scores.softmax(1) * attention_mask

    @full_precision()
    def forward(
        self, sparse_sequence: Float[Tensor, "B L V"], attention_mask: Bool[Tensor, "B L"]
    ) -> Float[Tensor, "B V"]:
        return torch.einsum("bl,blv->bv", self.weights(sparse_sequence, attention_mask), sparse_sequence)


class TopK(nn.Module):
    """At inference only, keeps the k strongest words of each position; in training everything passes.

    A hard cut gives what it drops no gradient, so a model trained under it could never swap a word in.
    """

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k

    def forward(self, sparse_sequence: Float[Tensor, "*batch V"]) -> Float[Tensor, "*batch V"]:
        if self.training or self.k == 0:
            return sparse_sequence
        return sparse_sequence * largest_k_mask(sparse_sequence, self.k)
