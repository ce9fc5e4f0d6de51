"""Activations of many texts as one sparse matrix, and a model's decisions on edited matrices.

A removal acts between sparse layer and decision, so texts are read once; after that, every removal costs a pass of the
head and none of the encoder.
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

from lexical_sae.evaluation.collect import read_corpus
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.sparse_code import SparseCode
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.progress import OnStep, silent

Codes = Any
"""A `scipy.sparse.csr_array` [N, V], a row per text; `Any`, because scipy has no type stubs."""
ROWS_AT_ONCE = 64
"""Texts whose vectors are dense at a time."""


@dataclass(frozen=True)
class Readings:
    """Activations and contributions: a row per text, a column per dimension."""

    codes: Codes
    """Activation of each word."""
    contributions: Codes
    """Contribution of each to the positive labels: class-centred, summed over them."""


@dataclass(frozen=True)
class EditedCodes:
    """`words - scores @ directions`: removed words are missing from `words`, and erasures are a few directions."""

    words: Codes
    scores: Float[ndarray, "N R"]
    directions: Float[ndarray, "R V"]

    @classmethod
    def untouched(cls, words: Codes) -> "EditedCodes":
        """Words without an edit."""
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
class Predictions:
    """A model's predictions for texts."""

    predicted: Int[ndarray, " N"]
    flagged: Bool[ndarray, " N"]
    """Whether the predicted label is one of the positive ones."""
    score: Float[ndarray, " N"]
    """Probability of the positive labels together."""


Decide = Callable[[EditedCodes], Predictions]
"""From activations, edited or not, to predictions."""


def texts_with(codes: Codes) -> Int[ndarray, " V"]:
    """In how many texts each word is active."""
    return np.bincount(codes.indices, minlength=codes.shape[1])


def read_texts(
    model: LexicalSAE, texts: Sequence[str], positive: Sequence[int], batch_size: int = 32, on_step: OnStep = silent
) -> Readings:
    """Activations of texts, and their contributions to the labels at `positive`."""
    rows, ids, values, contributed = [], [], [], []
    for batch in read_corpus(model, texts, batch_size=batch_size, on_step=on_step):
        code = batch.state.code
        rows.append(torch.tensor(batch.rows)[code.rows.cpu()])
        ids.append(code.ids.cpu())
        values.append(code.values.cpu())
        contributed.append(batch.contributions[:, list(positive)].sum(1).cpu())
    if not rows:
        raise SettingsError("there is no text to read; give at least one")
    places = torch.cat(rows).numpy(), torch.cat(ids).numpy()
    shape = (len(texts), len(model.dimensions))
    codes, contributions = (
        coo_array((torch.cat(some).double().numpy(), places), shape=shape).tocsr() for some in (values, contributed)
    )
    return Readings(codes, contributions)


def decider(model: LexicalSAE, positive: Sequence[int]) -> Decide:
    """The decisions of a model's head for texts on edited activations.

    With words at zero they are those of the model with these words suppressed, if it pools by the maximum and has no
    cap per position; otherwise another word may take the place (`docs/surgery.md`).
    """
    chosen = list(positive)

    def decide(edited: EditedCodes) -> Predictions:
        rows = np.arange(edited.words.shape[0])
        parts = [_logits(model, edited.take(some)) for some in np.array_split(rows, -(-len(rows) // ROWS_AT_ONCE) or 1)]
        logits = torch.cat(parts).double().cpu()
        predicted = logits.argmax(-1).numpy()
        return Predictions(predicted, np.isin(predicted, chosen), logits.softmax(-1)[:, chosen].sum(-1).numpy())

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
