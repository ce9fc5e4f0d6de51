"""The active words of a batch, written compactly: what inference, explanation and evaluation pass around.

A dense [B, V] vector holds some hundred numbers in thirty thousand places. Here they stand one after another, text
after text: entries `offsets[b]` up to `offsets[b + 1]` belong to text b.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import embedding_bag


@dataclass(frozen=True)
class SparseCode:
    """Ids, activations and winning positions of the active words of a batch of texts."""

    ids: Int[Tensor, " K"]
    """Dimensions, ascending within a text."""
    values: Float[Tensor, " K"]
    """Strength of each, never zero."""
    positions: Int[Tensor, " K"]
    """Token position that gave the activation; -1 where several did (attention pooling)."""
    offsets: Int[Tensor, " B1"]
    """Where each text begins, and at the end the number of entries."""
    size: int
    """V, the number of dimensions."""
    defaults: Float[Tensor, " K"] | None = None
    """Activation of each without context, for models whose words have a default."""

    @classmethod
    def from_dense(
        cls, sparse_vector: Float[Tensor, "B V"], positions: Int[Tensor, " K"] | None = None
    ) -> "SparseCode":
        """The non-zero entries of dense vectors; `positions` one per entry, row by row."""
        rows, ids = sparse_vector.nonzero(as_tuple=True)
        if positions is None:
            positions = torch.full_like(ids, -1)
        shape = (len(sparse_vector), sparse_vector.shape[-1])
        return cls.from_entries(rows, ids, sparse_vector[rows, ids], positions, shape)

    @classmethod
    def from_entries(
        cls,
        rows: Int[Tensor, " K"],
        ids: Int[Tensor, " K"],
        values: Float[Tensor, " K"],
        positions: Int[Tensor, " K"],
        shape: tuple[int, int],
    ) -> "SparseCode":
        """A code of `shape` [B, V] from entries that stand row by row."""
        counts = torch.bincount(rows, minlength=shape[0])
        return cls(ids, values, positions, torch.cat([counts.new_zeros(1), counts.cumsum(0)]), shape[1])

    def keep_strongest(self, k: int) -> "SparseCode":
        """The k strongest entries of each text; of equal ones the lowest id."""
        # Strongest first, then row by row: both sorts are stable, so ties stay in the order of ids.
        by_activation = torch.argsort(self.values, descending=True, stable=True)
        order = by_activation[torch.argsort(self.rows[by_activation], stable=True)]
        rank = torch.arange(len(order), device=order.device) - self.offsets[self.rows[order]]
        kept = order[rank < k].sort().values
        shape = (len(self), self.size)
        return self.from_entries(self.rows[kept], self.ids[kept], self.values[kept], self.positions[kept], shape)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def rows(self) -> Int[Tensor, " K"]:
        """The text each entry belongs to."""
        return torch.repeat_interleave(torch.arange(len(self), device=self.offsets.device), self.counts)

    @property
    def counts(self) -> Int[Tensor, " B"]:
        """Number of active words of each text."""
        return self.offsets.diff()

    def text(self, index: int) -> slice:
        """Where the entries of one text stand."""
        return slice(int(self.offsets[index]), int(self.offsets[index + 1]))

    def dense(self) -> Float[Tensor, "B V"]:
        """The dense vectors back."""
        dense = self.values.new_zeros(len(self), self.size)
        dense[self.rows, self.ids] = self.values
        return dense

    def weighted_sum(self, word_vectors: Float[Tensor, "V H"]) -> Float[Tensor, "B H"]:
        """`s @ word_vectors`: the active words' rows, weighted by their activations and summed per text."""
        values = self.values.to(word_vectors.dtype)
        return embedding_bag(self.ids, word_vectors, self.offsets[:-1], mode="sum", per_sample_weights=values)
