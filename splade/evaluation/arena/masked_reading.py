"""The same text with some of its words masked: what the model then decides."""

from collections.abc import Collection, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from splade.data.batches import Batch
from splade.evaluation.arena.case import Case
from splade.inference.reading import read_batch

WordSet = frozenset[int]
"""Words of a text by their number in reading order."""
TEXTS_AT_ONCE = 32


@torch.no_grad()
def logits_masked(case: Case, sets: Sequence[Collection[int]]) -> Float[Tensor, "N C"]:
    """The logits of the text with each set of its words masked, token by token, so that no other word moves.

    Sets that are given twice are read once.
    """
    wanted = [frozenset(words) for words in sets]
    distinct = list(dict.fromkeys(wanted))
    parts = [_read(case, distinct[start : start + TEXTS_AT_ONCE]) for start in range(0, len(distinct), TEXTS_AT_ONCE)]
    place = {words: i for i, words in enumerate(distinct)}
    return torch.cat(parts)[[place[words] for words in wanted]]


def _read(case: Case, sets: Sequence[WordSet]) -> Float[Tensor, "N C"]:
    batch, words = case.read.batch, case.layout.token_words
    is_masked = torch.tensor([[word in hidden for word in words] for hidden in sets])
    ids = batch.input_ids.expand(len(sets), -1).masked_fill(is_masked, mask_id(case))
    mask = batch.attention_mask.expand(len(sets), -1)
    return read_batch(case.model, Batch(ids, mask, torch.arange(len(sets)))).logits


def mask_id(case: Case) -> int:
    """The token that stands for a hidden word."""
    return int(case.model.tokenizer.mask_token_id)  # pyright: ignore[reportArgumentType]
