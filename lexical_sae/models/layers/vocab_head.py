"""The vocabulary decoder and the max-pool as one operation: [B, V] from [B, L, D] without [B, L, V].

Forward, chunk by chunk of the vocabulary: multiply, take the maximum over the real positions, forget the rest. The
bias is per word, so it is added after pooling. Backward: only pairs (document, word) with a non-zero gradient count,
and for those alone the position that won is computed again:

    dh[b, n*] += G[b, v] * w[v]        dw[v] += sum_b G[b, v] * h[b, n*]        dc[v] = sum_b G[b, v]

`reference_max_logits` is the slow form that the tests compare with. Gates are not its business: every gate here is
non-decreasing, so gating the pooled logits equals pooling the gated ones.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

VOCABULARY_CHUNK = 2048
"""Words per step: small enough that a tile of logits stays in cache, large enough for an efficient product."""
PAIR_CHUNK = 1024
"""Words per document and step: bounds the gathered rows at [B, 1024, D]."""
DENSE_SHARE = 0.1
"""Share of the vocabulary with a gradient above which gathering rows costs more than whole products."""


def max_logits(
    hidden: Float[Tensor, "B L D"],
    weight: Float[Tensor, "V D"],
    bias: Float[Tensor, " V"],
    mask: Bool[Tensor, "B L"],
) -> Float[Tensor, "B V"]:
    """Greatest logit of each word over the real positions of each document; -inf for a document without any.

    In the weight's precision, under autocast too: in half precision equal logits would hide which position won.
    """
    with torch.autocast(hidden.device.type, enabled=False):
        return _MaxLogits.apply(hidden.to(weight.dtype), weight, bias, mask)  # pyright: ignore[reportReturnType]


def can_open(logits: Float[Tensor, "*batch"], opening: Float[Tensor, "*#batch"]) -> Bool[Tensor, "*batch"]:
    """Which logits exceed their opening; what is not a number counts, except for words that never open.

    Not `logits > opening`: a broken model would give an empty code and a clean prediction.
    """
    return ~(logits <= opening) & (opening != torch.inf)


def reference_max_logits(
    hidden: Float[Tensor, "B L D"],
    weight: Float[Tensor, "V D"],
    bias: Float[Tensor, " V"],
    mask: Bool[Tensor, "B L"],
) -> Float[Tensor, "B V"]:
    """What `max_logits` must equal: all logits, padding at -inf, the first maximum of each word."""
    logits = (hidden @ weight.T).masked_fill(~mask[..., None], -torch.inf)
    return logits.max(1).values + bias


def winning_positions(
    hidden: Float[Tensor, "B L D"],
    weight: Float[Tensor, "V D"],
    mask: Bool[Tensor, "B L"],
    words: Int[Tensor, "B K"],
) -> Int[Tensor, "B K"]:
    """Position whose logit is greatest for each listed word of each document; the first of equals."""
    # Some columns at a time: one document with every word open would make it [B, V, D].
    products = (weight[some] @ hidden.transpose(1, 2) for some in words.split(PAIR_CHUNK, dim=1))
    return torch.cat([some.masked_fill(~mask[:, None], -torch.inf).argmax(-1) for some in products], dim=1)


def open_logits(
    hidden: Float[Tensor, "N D"],
    weight: Float[Tensor, "V D"],
    bias: Float[Tensor, " V"],
    opening: Float[Tensor, " V"],
) -> tuple[Int[Tensor, " K"], Int[Tensor, " K"], Float[Tensor, " K"]]:
    """Row, word and logit wherever a word's logit exceeds its opening, rows ascending, then words; never [N, V].

    For inference. The slow form is `can_open(hidden @ weight.T + bias, opening).nonzero()`.
    """
    found = []
    for start in range(0, weight.shape[0], VOCABULARY_CHUNK):
        chunk = slice(start, start + VOCABULARY_CHUNK)
        logits = hidden @ weight[chunk].T + bias[chunk]
        rows, words = can_open(logits, opening[chunk]).nonzero(as_tuple=True)
        found.append((rows, words + start, logits[rows, words]))
    rows, words, logits = (torch.cat(parts) for parts in zip(*found, strict=True))
    order = torch.argsort(rows, stable=True)
    return rows[order], words[order], logits[order]


class _MaxLogits(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, mask: Tensor) -> Tensor:
        ctx.save_for_backward(hidden, weight, mask)
        ctx.bias_dtype = bias.dtype
        batch, length, width = hidden.shape
        rows = _padding_repeats_a_real_token(hidden, mask).reshape(-1, width)
        pooled = hidden.new_empty(batch, weight.shape[0])
        for start in range(0, weight.shape[0], VOCABULARY_CHUNK):
            chunk = slice(start, start + VOCABULARY_CHUNK)
            pooled[:, chunk] = (rows @ weight[chunk].T).unflatten(0, (batch, length)).amax(1)
        pooled += bias
        return pooled.masked_fill_(~mask.any(1, keepdim=True), -torch.inf)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        (grad,) = grads
        hidden, weight, mask = ctx.saved_tensors
        wants_hidden, wants_weight, wants_bias, _ = ctx.needs_input_grad
        grad = grad.masked_fill(~mask.any(1, keepdim=True), 0.0)
        grad_bias = grad.sum(0).to(ctx.bias_dtype) if wants_bias else None
        grad_hidden = torch.zeros_like(hidden) if wants_hidden else None
        grad_weight = torch.zeros_like(weight) if wants_weight else None
        words, is_pair = padded_rows(grad != 0)
        pulls = grad.gather(1, words) * is_pair
        # A loss may be differentiated inside autocast as well as after it.
        with torch.autocast(hidden.device.type, enabled=False):
            if words.shape[1] > DENSE_SHARE * weight.shape[0]:
                _add_dense_gradients(hidden, weight, mask, grad, grad_hidden, grad_weight)
                return grad_hidden, grad_weight, grad_bias, None
            for start in range(0, words.shape[1], PAIR_CHUNK):
                chunk = slice(start, start + PAIR_CHUNK)
                _add_pair_gradients(hidden, weight, mask, words[:, chunk], pulls[:, chunk], grad_hidden, grad_weight)
        return grad_hidden, grad_weight, grad_bias, None


def _padding_repeats_a_real_token(hidden: Tensor, mask: Tensor) -> Tensor:
    """Hidden states whose padding is a copy of a real token: it can tie for the maximum, never change it."""
    if bool(mask.all()):
        return hidden
    first_real = mask.to(torch.int8).argmax(1)
    copies = hidden.take_along_dim(first_real[:, None, None], dim=1)
    return torch.where(mask[..., None], hidden, copies)


def padded_rows(chosen: Bool[Tensor, "B V"]) -> tuple[Int[Tensor, "B K"], Bool[Tensor, "B K"]]:
    """Chosen words, document by document, padded with word 0 to the longest row; and which entries are no padding."""
    documents, words = chosen.nonzero(as_tuple=True)
    counts = torch.bincount(documents, minlength=chosen.shape[0])
    slots = torch.arange(len(words), device=chosen.device) - (counts.cumsum(0) - counts)[documents]
    padded = words.new_zeros(chosen.shape[0], int(counts.max()) if len(words) else 0)
    padded[documents, slots] = words
    return padded, torch.arange(padded.shape[1], device=chosen.device)[None] < counts[:, None]


def _add_pair_gradients(
    hidden: Tensor,
    weight: Tensor,
    mask: Tensor,
    words: Int[Tensor, "B K"],
    pulls: Float[Tensor, "B K"],
    grad_hidden: Tensor | None,
    grad_weight: Tensor | None,
) -> None:
    """Send each pair's gradient to the position that won it and to the word's row."""
    positions = winning_positions(hidden, weight, mask, words)
    length, width = hidden.shape[1:]
    flat = (positions + torch.arange(len(hidden), device=hidden.device)[:, None] * length).flatten()
    if grad_hidden is not None:
        grad_hidden.view(-1, width).index_add_(0, flat, (pulls[..., None] * weight[words]).flatten(0, 1))
    if grad_weight is not None:
        winners = hidden.reshape(-1, width)[flat]
        grad_weight.index_add_(0, words.flatten(), pulls.flatten()[:, None] * winners)


def _add_dense_gradients(
    hidden: Tensor,
    weight: Tensor,
    mask: Tensor,
    grad: Float[Tensor, "B V"],
    grad_hidden: Tensor | None,
    grad_weight: Tensor | None,
) -> None:
    """The same for gradients that are not sparse: whole products, chunk by chunk of the vocabulary."""
    batch, length, width = hidden.shape
    rows = hidden.reshape(-1, width)
    for start in range(0, weight.shape[0], VOCABULARY_CHUNK):
        chunk = slice(start, start + VOCABULARY_CHUNK)
        logits = (rows @ weight[chunk].T).unflatten(0, (batch, length)).masked_fill_(~mask[..., None], -torch.inf)
        winners = logits.argmax(1, keepdim=True)
        pulls = torch.zeros_like(logits).scatter_(1, winners, grad[:, None, chunk]).flatten(0, 1)
        if grad_hidden is not None:
            grad_hidden.view(-1, width).addmm_(pulls, weight[chunk])
        if grad_weight is not None:
            grad_weight[chunk] = pulls.T @ rows
