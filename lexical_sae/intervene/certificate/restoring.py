"""The original, restored from the edited model and the changes in its certificate."""

import torch
from jaxtyping import Float
from torch import Tensor

from lexical_sae.intervene import with_closed
from lexical_sae.intervene.certificate.document import ChangedRow, Construction
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.word_views import document_table, multi_piece_words, with_rows, with_words, without_last_words

UNSEEN_SLACK = 1e-5
"""Rounding difference allowed for weights recomputed from the spelling of an unseen word."""


def original_of(edited: LexicalSAE, construction: Construction) -> LexicalSAE:
    """The original: rows restored, removed dimensions no longer suppressed, added words gone.

    Claims about dimensions that the model does not have are skipped: the hashes will differ.
    """
    restored = _reopened(edited, construction)
    count = len(construction.added)
    if count and multi_piece_words(edited)[-count:] == construction.added:
        restored = without_last_words(restored, count)
    return restored


def comparable_original(edited: LexicalSAE, construction: Construction) -> LexicalSAE:
    """The original with dimensions for the added words, as the original reads them; numbered as in the edited model."""
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
