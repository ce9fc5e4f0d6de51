"""One hidden state per text, to fit an autoencoder on."""

from collections.abc import Callable, Mapping, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from lexical_sae.data.batches import batches, tokenize
from lexical_sae.utils.errors import DataError
from lexical_sae.utils.progress import OnStep, silent

EncodeTokens = Callable[[Int[Tensor, "B L"], Bool[Tensor, "B L"]], Float[Tensor, "B L E"]]
"""Token ids and mask to the state of every position: `model.backbone.encoder_states`, or a dense model's."""
PoolStates = Callable[[Float[Tensor, "B L E"], Bool[Tensor, "B L"]], Float[Tensor, "B E"]]


def mean_state(states: Float[Tensor, "B L E"], mask: Bool[Tensor, "B L"]) -> Float[Tensor, "B E"]:
    """The mean over real tokens.

    Example: states [1, 3, 9] of which the last is padding -> 2
    """
    kept = mask[..., None].to(states.dtype)
    return (states * kept).sum(1) / kept.sum(1).clamp(min=1)


def first_state(states: Float[Tensor, "B L E"], mask: Bool[Tensor, "B L"]) -> Float[Tensor, "B E"]:
    """The state of the first real token: [CLS] in most families."""
    first = mask.int().argmax(1)
    return states[torch.arange(len(states), device=states.device), first]


POOLS: Mapping[str, PoolStates] = {"mean": mean_state, "cls": first_state}


@torch.no_grad()
def document_states(
    encode: EncodeTokens,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    max_length: int,
    pool: str = "mean",
    batch_size: int = 32,
    on_step: OnStep = silent,
) -> Float[Tensor, "N E"]:
    """The pooled state of each text, in their order, on the CPU.

    Example: `document_states(model.backbone.encoder_states, model.tokenizer, texts, model.max_length)`
    """
    if pool not in POOLS:
        raise DataError(f"pool {pool!r} is unknown; choose from {', '.join(POOLS)}")
    if not texts:
        raise DataError("there is no text to read; give at least one")
    tokens, found = tokenize(tokenizer, texts, max_length), {}
    for batch in batches(tokens, batch_size, "reading hidden states", on_step):
        pooled = POOLS[pool](encode(batch.input_ids, batch.attention_mask), batch.attention_mask)
        found.update(zip(batch.rows.tolist(), pooled.float().cpu(), strict=True))
    return torch.stack([found[row] for row in range(len(texts))])
