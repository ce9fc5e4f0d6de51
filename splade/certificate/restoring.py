"""The model before an edit, from the model after it and what the certificate says was changed."""

import torch
from jaxtyping import Float
from torch import Tensor

from splade.certificate.document import ChangedRow, Construction
from splade.intervene import with_closed
from splade.models.lexical_sae import LexicalSAE
from splade.models.word_views import document_table, multi_piece_words, with_rows, with_words, without_last_words

UNSEEN_SLACK = 1e-5
"""Difference of a weight that rounding explains, where it is computed again from the spelling of an unseen word."""


def original_of(edited: LexicalSAE, construction: Construction) -> LexicalSAE:
    """The original: rows as they were, removed dimensions open again, added words gone.

    Claims that cannot be true of the model (dimensions that it does not have) are passed over: hashes tell then.
    """
    restored = _reopened(edited, construction)
    count = len(construction.added)
    if count and multi_piece_words(edited)[-count:] == construction.added:
        restored = without_last_words(restored, count)
    return restored


def comparable_original(edited: LexicalSAE, construction: Construction) -> LexicalSAE:
    """The original with dimensions for the added words, each as the original reads it: numbered as the edited model."""
    original = original_of(edited, construction)
    return with_words(original, multi_piece_words(edited)[len(multi_piece_words(original)) :])


def rows_of(changed: tuple[ChangedRow, ...], field: str, like: Tensor) -> Float[Tensor, "K C"]:
    """The rows `before` or `after` as a tensor; a float in JSON gives back the bits of a weight."""
    return torch.tensor([getattr(row, field) for row in changed], dtype=like.dtype, device=like.device)


def _reopened(edited: LexicalSAE, construction: Construction) -> LexicalSAE:
    closed = edited.gate.closed.clone()
    closed[[i for i in construction.opened_before if i < len(closed)]] = False
    changed = tuple(row for row in construction.changed if row.id < len(closed))
    if not changed:
        return with_closed(edited, closed)
    ids = torch.tensor([row.id for row in changed], device=closed.device)
    closed[ids] = torch.tensor([not row.was_open for row in changed], device=closed.device)
    return with_rows(edited, ids, rows_of(changed, "before", document_table(edited).word_vectors), closed)
