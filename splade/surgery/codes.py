"""The words of many texts as one sparse matrix, and what a model decides on matrices that were edited.

Everything a removal does happens between words and decision, so texts are read once; after that, every removal that is
tried costs a pass of the head and no pass of the encoder.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from scipy.sparse import coo_array
from torch import Tensor

from splade.circuits.sparse_code import SparseCode
from splade.evaluation.collect import read_corpus
from splade.models.lexical_sae import LexicalSAE
from splade.progress import OnStep, silent

Codes = Any
"""A `scipy.sparse.csr_array` [N, V], a row per text; `Any`, because scipy has no types that checkers could read."""
ROWS_AT_ONCE = 64
"""Texts whose vectors are dense at the same time."""


@dataclass(frozen=True)
class Readings:
    """What a model read in texts: a row per text, a column per dimension."""

    codes: Codes
    """Strength of each word."""
    contributions: Codes
    """What each says for the positive labels: class-centred, summed over them."""


@dataclass(frozen=True)
class EditedCodes:
    """`words - scores @ directions`: words that were taken out are gone from `words`, the rest is a few directions."""

    words: Codes
    scores: Float[ndarray, "N R"]
    directions: Float[ndarray, "R V"]

    @classmethod
    def untouched(cls, words: Codes) -> "EditedCodes":
        """Nothing but words."""
        rows, size = words.shape
        return cls(words, np.zeros((rows, 0)), np.zeros((0, size)))

    @property
    def support(self) -> Int[ndarray, " K"]:
        """Columns that are not zero in every text."""
        return np.flatnonzero((texts_with(self.words) > 0) | (self.directions != 0).any(0))

    def dense(self, columns: Int[ndarray, " K"]) -> Float[ndarray, "N K"]:
        """Some of the columns, written out."""
        return self.words[:, columns].toarray() - self.scores @ self.directions[:, columns]

    def take(self, rows: Int[ndarray, " M"]) -> "EditedCodes":
        """Some of the texts."""
        return EditedCodes(self.words[rows], self.scores[rows], self.directions)


@dataclass(frozen=True)
class Answers:
    """What a model says of each text."""

    predicted: Int[ndarray, " N"]
    said: Bool[ndarray, " N"]
    """Whether the predicted label is one of the positive ones."""
    score: Float[ndarray, " N"]
    """Probability of the positive labels together."""


Decide = Callable[[EditedCodes], Answers]
"""From words, edited or not, to answers."""


def texts_with(codes: Codes) -> Int[ndarray, " V"]:
    """In how many texts each word is active."""
    return np.bincount(codes.indices, minlength=codes.shape[1])


def read_texts(
    model: LexicalSAE, texts: Sequence[str], positive: Sequence[int], batch_size: int = 32, on_step: OnStep = silent
) -> Readings:
    """The words that a model reads in texts, and what they say for the labels at `positive`."""
    rows, ids, values, said = [], [], [], []
    for batch in read_corpus(model, texts, batch_size=batch_size, on_step=on_step):
        code = batch.state.code
        rows.append(torch.tensor(batch.rows)[code.rows.cpu()])
        ids.append(code.ids.cpu())
        values.append(code.values.cpu())
        said.append(batch.contributions[:, list(positive)].sum(1).cpu())
    if not rows:
        raise ValueError("there is no text to read; give at least one")
    places = torch.cat(rows).numpy(), torch.cat(ids).numpy()
    shape = (len(texts), len(model.dimensions))
    codes, contributions = (
        coo_array((torch.cat(some).double().numpy(), places), shape=shape).tocsr() for some in (values, said)
    )
    return Readings(codes, contributions)


def decider(model: LexicalSAE, positive: Sequence[int]) -> Decide:
    """The decisions of a model's head for texts on edited words.

    For words that are zeroed the answers are those of the model with the words closed, if it pools by the maximum and
    has no cap per position; otherwise another word may take the place (`docs/surgery.md`).
    """
    chosen = list(positive)

    def decide(edited: EditedCodes) -> Answers:
        rows = np.arange(edited.words.shape[0])
        parts = [_logits(model, edited.take(some)) for some in np.array_split(rows, -(-len(rows) // ROWS_AT_ONCE) or 1)]
        logits = torch.cat(parts).double().cpu()
        predicted = logits.argmax(-1).numpy()
        return Answers(predicted, np.isin(predicted, chosen), logits.softmax(-1)[:, chosen].sum(-1).numpy())

    return decide


@torch.no_grad()
def _logits(model: LexicalSAE, edited: EditedCodes) -> Float[Tensor, "B C"]:
    device, dtype = model.gate.closed.device, next(model.head().parameters()).dtype
    if len(edited.directions):
        dense = edited.words.toarray() - edited.scores @ edited.directions
        return model.head()(torch.from_numpy(dense).to(device, dtype)).logits
    words = edited.words.copy()
    words.eliminate_zeros()
    words.sort_indices()
    ids = torch.from_numpy(words.indices.astype(np.int64))
    offsets = torch.from_numpy(words.indptr.astype(np.int64))
    values = torch.from_numpy(words.data).to(device, dtype)
    code = SparseCode(ids.to(device), values, torch.full_like(ids, -1), offsets.to(device), words.shape[1])
    return model.read(code).logits
