"""Attention as an explanation: the real weights of the encoder, not a stand-in.

A token's score is the attention it receives in the last layer, averaged over heads and over the tokens that attend. A
word of the text has the sum of its tokens; an active word has the score of the token that it won at, and nothing where
several tokens gave it (attention pooling). Attention knows no class: it cannot tell words for from words against.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lexical_sae.evaluation.explainers.case import Case, Scores
from lexical_sae.evaluation.explainers.explainer import Answer

REFERENCE = "Jain & Wallace 2019, arXiv:1902.10186"


@dataclass(frozen=True)
class Attention:
    """The encoder's attention weights; costs a pass with the plain kernel, the only one that hands them out."""

    name: str = "attention"
    about: str = "attention that each token receives in the last layer"
    is_drawn: bool = False
    is_in_logits: bool = False

    def explain(self, case: Case, seed: int) -> Answer:
        """Scores of the tokens, given to what was read from them."""
        del seed
        received = received_attention(case)
        positions = case.state.code.positions
        active = received[positions.clamp(min=0)].masked_fill(positions < 0, 0.0)
        return Answer(active, per_word(case, received.cpu()))


@torch.no_grad()
def received_attention(case: Case) -> Float[Tensor, " L"]:
    """Attention that each token of the text receives; sums to one."""
    encoder: Any = case.model.backbone.encoder
    device = next(case.model.parameters()).device
    batch = case.read.batch
    with _handing_out_weights(encoder):
        read = encoder(
            input_ids=batch.input_ids.to(device),
            attention_mask=batch.attention_mask.to(device).long(),
            output_attentions=True,
        )
    return read.attentions[-1][0].mean((0, 1))


def per_word(case: Case, of_tokens: Float[Tensor, " L"]) -> Scores:
    """Scores of tokens, summed over the tokens of each word; what belongs to no word is left out."""
    scores = torch.zeros(case.num_written, dtype=of_tokens.dtype)
    for score, word in zip(of_tokens, case.layout.token_words, strict=True):
        if word is not None:
            scores[word] += score
    return scores


@contextmanager
def _handing_out_weights(encoder: nn.Module) -> Iterator[None]:
    """While this is open, the encoder computes attention step by step; fused kernels never make the weights."""
    inner: Any = encoder
    before = inner.config._attn_implementation
    inner.set_attn_implementation("eager")
    try:
        yield
    finally:
        inner.set_attn_implementation(before)
