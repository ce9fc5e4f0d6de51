"""A linear head: one row per word, one column per class. The table is the model.

A contribution is the row times the word's activation, and the effect of removing the word is exactly that.
"""

import copy
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from lexical_sae.models.circuit_state import CircuitState, SparseCircuitState
from lexical_sae.models.sparse_code import SparseCode
from lexical_sae.utils.part import PartConfig
from lexical_sae.utils.precision import full_precision, refuse_half_precision


class TableHead(nn.Module):
    """`logits = rows' s + bias`. Training fits it without context and gradient steps leave it alone."""

    REFERENCE: ClassVar = "Cox 1958, The regression analysis of binary sequences"
    is_piecewise_linear = False
    is_linear = True
    word_layer = "word_vectors"
    """The parameter with a row per word."""

    class Config(PartConfig):
        kind: Literal["table"] = "table"
        least_row: float = Field(default=0.06, ge=0)
        """Rows whose largest entry is smaller, in logits, are empty: such words have no weight and are not shown."""
        least_certainty: float = Field(default=0, ge=0)
        """Rows without an entry so many standard errors from zero are empty; by the jackknife over five folds. For long
        texts, in which the chance part of many plain words adds up."""

        def build(self, size: int, num_labels: int) -> "TableHead":
            return TableHead(self, size, num_labels)

    def __init__(self, config: Config, size: int, num_labels: int) -> None:
        super().__init__()
        self.config = config
        self.word_vectors = nn.Parameter(torch.zeros(size, num_labels), requires_grad=False)
        self.class_bias = nn.Parameter(torch.zeros(num_labels), requires_grad=False)
        self.unseen_weights = nn.Parameter(torch.empty(0, num_labels), requires_grad=False)
        """From a word's input embedding to its row, for words that training never met; the last is the bias."""

    def make_room(self, width: int) -> None:
        """Room for what gives unseen words a row, from embeddings of this width."""
        self.unseen_weights = nn.Parameter(
            self.class_bias.new_zeros(width + 1, len(self.class_bias)), requires_grad=False
        )

    def rows_of_unseen(self, embeddings: Float[Tensor, "U D"]) -> Float[Tensor, "U C"]:
        """Rows of words that training never met; empty where they would be too small to count."""
        rows = embeddings @ self.unseen_weights[:-1] + self.unseen_weights[-1]
        return rows.masked_fill(rows.abs().amax(-1, keepdim=True) < self.config.least_row, 0.0)

    def with_more(self, rows: Float[Tensor, "U C"]) -> "TableHead":
        """The same table with rows below it, for a view of a model."""
        return self.with_rows(torch.cat([self.word_vectors, rows]))

    def with_rows(self, rows: Float[Tensor, "W C"]) -> "TableHead":
        """The same head with another table, for a view of a model."""
        view = copy.copy(self)
        view._parameters = {**self._parameters, "word_vectors": nn.Parameter(rows, requires_grad=False)}
        return view

    def start_from(self, embeddings: Float[Tensor, "V D"]) -> None:
        """A table starts empty and is fitted, not learned."""

    def calm(self, sparse_vectors: Float[Tensor, "N V"]) -> None:
        """Nothing to shrink."""

    @full_precision()
    def forward(self, sparse_vector: Float[Tensor, "*batch V"], words: Int[Tensor, " V"] | None = None) -> CircuitState:
        """The decision; with `words`, on vectors that have a place for those dimensions alone."""
        refuse_half_precision(self.word_vectors)
        rows = self.word_vectors if words is None else self.word_vectors.index_select(0, words)
        s = sparse_vector.to(rows.dtype)
        logits = s @ rows + self.class_bias
        readout, b_eff = self._constants(logits)
        return CircuitState(logits, s, b_eff=b_eff, readout=readout, word_vectors=rows)

    @full_precision()
    def read(self, code: SparseCode) -> SparseCircuitState:
        """The same decisions from the rows of the active words alone."""
        refuse_half_precision(self.word_vectors)
        logits = code.weighted_sum(self.word_vectors) + self.class_bias
        readout, b_eff = self._constants(logits)
        return SparseCircuitState(logits, code, readout, self.word_vectors, b_eff)

    def _constants(
        self, logits: Float[Tensor, "*batch C"]
    ) -> tuple[Float[Tensor, "*batch C C"], Float[Tensor, "*batch C"]]:
        """Readout and bias, the same for every text."""
        identity = torch.eye(logits.shape[-1], dtype=logits.dtype, device=logits.device)
        return identity.expand(*logits.shape, -1), self.class_bias.expand_as(logits)
