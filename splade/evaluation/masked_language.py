"""Can the model still guess a hidden token from what the gate lets through?"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from splade.data.batches import Batch
from splade.evaluation.bootstrap import BootstrapMeans
from splade.evaluation.intervals import Interval
from splade.models.lexical_sae import LexicalSAE

MASKED_SHARE = 0.15
"""Of the tokens, hidden from the model to see whether it can guess them."""
GUESSED_AT_ONCE = 64
"""Masked positions whose logits over the whole vocabulary are made together."""


@dataclass(frozen=True)
class MaskedLanguageLoss:
    """How well hidden tokens are guessed, in nats per token."""

    tokens: int
    raw: Interval
    """From the logits before the gate."""
    gated: Interval
    """From what the gate lets through. With a neighbourhood nothing opens at a hidden token: as bad as `uniform`."""
    uniform: float
    """Of knowing nothing."""


def language_figures(
    model: LexicalSAE, batch: Batch, rows: Sequence[int], seed: int
) -> dict[str, Float[Tensor, " B"] | Int[Tensor, " B"]]:
    """Per text, the summed loss of guessing hidden tokens before and after the gate, and how many were hidden."""
    if model.tokenizer.mask_token_id is None or model.literal is not None:
        # Literal words are not guessed from logits.
        return {}
    ids, mask = batch.input_ids, batch.attention_mask
    is_hidden = _hide(model, batch, rows, seed)
    given = ids.masked_fill(is_hidden, int(model.tokenizer.mask_token_id))  # pyright: ignore[reportArgumentType]
    states, at, truth = model.backbone.hidden(given, mask)[is_hidden], is_hidden.nonzero()[:, 0], ids[is_hidden]
    raw, kept = (states.new_zeros(len(ids)) for _ in range(2))
    for part in torch.arange(len(truth), device=ids.device).split(GUESSED_AT_ONCE):
        shown = given[is_hidden][part][:, None]
        gated = model.gate(model.projection.everywhere(states[part][:, None], shown, torch.ones_like(shown).bool()))
        guesses = model.backbone.decoder(states[part]), gated.activated[:, 0]
        for losses, logits in zip((raw, kept), guesses, strict=True):
            losses.index_add_(0, at[part], cross_entropy(logits.float(), truth[part], reduction="none"))
    return {"raw": raw, "kept": kept, "hidden": is_hidden.sum(1)}


def masked_language_loss(means: BootstrapMeans, size: int) -> MaskedLanguageLoss | None:
    """The losses per hidden token from the figures of all texts; `size` is the number of dimensions."""
    hidden = means["hidden"]
    if not hidden.count or not hidden.mean:
        return None
    # A ratio of sums: every hidden token counts alike, whatever the length of its text.
    losses = means.ratio("raw", "hidden"), means.ratio("kept", "hidden")
    return MaskedLanguageLoss(round(hidden.mean * hidden.count), *losses, math.log(size))


def _hide(model: LexicalSAE, batch: Batch, rows: Sequence[int], seed: int) -> Bool[Tensor, "B L"]:
    """A share of each text's tokens, drawn by lot; special tokens are never hidden."""
    special = torch.tensor(model.tokenizer.all_special_ids, device=batch.input_ids.device)
    may_hide = batch.attention_mask & ~torch.isin(batch.input_ids, special)
    width = batch.input_ids.shape[1]
    # Drawn to the full width and cut: a text's hidden tokens do not depend on the batch's padding.
    drawn = np.stack([np.random.default_rng([seed, 6, row]).random(model.max_length)[:width] for row in rows])
    return may_hide & (torch.from_numpy(drawn).to(may_hide.device) < MASKED_SHARE)
