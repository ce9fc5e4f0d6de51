"""Exact screening: bound every product in eight bits, compute only those that can open a word.

1. The decoder's rows of the words that may open are rounded to eight bits once, the hidden states per document.
2. One integer product bounds the greatest logit of every (document, word) pair. With h = ĥ + e_h and w = ŵ + e_w,
   h·w = ĥ·ŵ + e_h·ŵ + h·e_w <= ĥ·ŵ + ‖e_h‖‖ŵ‖ + ‖h‖‖e_w‖.
3. Pairs whose bound, bias and rounding slack exceed the word's opening logit are computed in full precision.

No other pair can open, so the active words are those of `max_logits`. Integer products live in private or optional
corners of torch: `lexical_sae.models.layers.int8_product` finds one that is right and faster than fp32, or none.

A bound of low rank, h·w <= (Ph)·(Pw) + ‖h_⊥‖‖w_⊥‖, needs no integers but does not pay: on movie reviews half of
the 384 directions leave 5 % of the pairs, a third 40 to 50 %; integers, with a scale per document, leave 0.5 to 2 %.
"""

import logging
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Int8
from torch import Tensor

from lexical_sae.models.layers.int8_product import TOKEN_TILE, Int8Product, fastest_product
from lexical_sae.models.layers.vocab_head import PAIR_CHUNK, VOCABULARY_CHUNK, padded_rows

logger = logging.getLogger(__name__)

MOST_CANDIDATES = 0.1
"""Share of the pairs above which whole products are cheaper than gathered ones, however long the documents."""
TOKENS_TO_GATHER_ALL = 640
"""Tokens per document at which gathering every pair would cost what whole products cost.

A gathered row serves one document, so the share of the pairs that breaks even grows with the document's length."""
SMALLEST_PROBLEM = 1e9
"""Multiplications below which nothing is probed or prepared: some eighty-five tokens of a small BERT."""


class Candidates(NamedTuple):
    """Every pair that can open, by document, then by word; some of them stay closed."""

    documents: Int[Tensor, " K"]
    words: Int[Tensor, " K"]
    logits: Float[Tensor, " K"]
    """Greatest logit over the document's positions, in full precision."""
    positions: Int[Tensor, " K"]
    """The first position that gives it."""


class QuantisedDecoder:
    """The decoder's rows of the words that may open, in eight bits, with what their bounds need."""

    def __init__(self, weight: Float[Tensor, "V D"], opening: Float[Tensor, " V"], product: Int8Product) -> None:
        self.product = product
        self.words = (opening != torch.inf).nonzero().flatten()
        rows = weight[self.words]
        quantised, self.scales = _to_integers(rows, 127)
        rounded = quantised * self.scales
        self.norms = rounded.norm(dim=1)
        width, eps = weight.shape[1], torch.finfo(weight.dtype).eps
        # Both this bound and the fp32 product it stands for are rounded, by at most width * eps * ‖h‖‖w‖ each.
        self.error_norms = (rows - rounded).norm(dim=1) + 4 * (width + 8) * eps * rows.norm(dim=1)
        parts = quantised.to(torch.int8).split(VOCABULARY_CHUNK) if len(rows) else ()
        self.chunks = [product.pack(part) for part in parts]

    def reaching(
        self, tokens: Float[Tensor, "N D"], counts: list[int], needed: Float[Tensor, " V"]
    ) -> Bool[Tensor, "B V"] | None:
        """Which words, by column of this decoder, can reach what they need in each document; None if too many do."""
        states, scales, errors, norms = _quantised_documents(tokens, counts, self.product.levels)
        reach = torch.empty(len(counts), len(self.words), dtype=torch.bool, device=tokens.device)
        found, limit = 0, most_candidates(counts) * reach.numel()
        for i, packed in enumerate(self.chunks):
            chunk = slice(i * VOCABULARY_CHUNK, (i + 1) * VOCABULARY_CHUNK)
            pooled = torch.cat(
                [
                    torch.stack([part.amax(0) for part in self.product(states[tile], packed).split(lengths)])
                    for tile, lengths in _tiles(counts)
                ]
            )
            bound = pooled * scales * self.scales[chunk, 0]
            bound.addcmul_(errors, self.norms[chunk]).addcmul_(norms, self.error_norms[chunk])
            # Not `bound > needed`: what is not a number stays in, and shows.
            reach[:, chunk] = ~(bound <= needed[chunk])
            found += int(reach[:, chunk].sum())
            if found > limit:
                return None
        return reach


class _Kept(NamedTuple):
    """A prepared decoder and what it was made from; no decoder where screening did not pay."""

    decoder: QuantisedDecoder | None
    marks: Float[Tensor, " V"]
    opening: Float[Tensor, " V"]


class Screen:
    """Finds the words that can open, where that is faster than computing all of them; for inference.

    Keeps the decoder in eight bits from one call to the next, and makes it again when a row of the weight or an
    opening has changed. Every row is compared by its product with a fixed random vector, a few milliseconds a call:
    fused optimisers and writes through `.data` change a tensor without raising its version.

    A batch of short documents with too many candidates for their length is left to `max_logits`, the next one is
    tried again. Where even long documents have too many, screening is off until an opening changes.
    """

    def __init__(self) -> None:
        self._kept: _Kept | None = None

    def __getstate__(self) -> dict[str, Any]:
        # A copied or pickled model prepares its own: packed weights cannot be copied.
        return {"_kept": None}

    @torch.no_grad()
    def candidates(
        self,
        hidden: Float[Tensor, "B L D"],
        weight: Float[Tensor, "V D"],
        bias: Float[Tensor, " V"],
        mask: Bool[Tensor, "B L"],
        opening: Float[Tensor, " V"],
    ) -> Candidates | None:
        """All pairs whose greatest logit can exceed the word's opening; None where `max_logits` is the faster way."""
        if not _is_worth_trying(hidden, weight, mask):
            return None
        product = fastest_product(hidden.device, weight.shape[1])
        if product is None:
            return None
        # Read once: another thread that uses the model may put another in its place.
        kept = self._kept
        if kept is not None and not _equal(kept.opening, opening):
            kept = None
        if kept is not None and kept.decoder is None:
            return None
        marks = _row_marks(weight)
        if kept is None or kept.decoder is None or not _equal(kept.marks, marks):
            kept = self._kept = _Kept(QuantisedDecoder(weight, opening, product), marks, opening.clone())
        assert kept.decoder is not None
        found = screened(hidden, weight, bias, mask, opening, kept.decoder)
        if found is None and most_candidates(mask.sum(1)[mask.any(1)].tolist()) >= MOST_CANDIDATES:
            logger.info("over %.0f %% of all words can open: no screening with these gates", 100 * MOST_CANDIDATES)
            self._kept = kept._replace(decoder=None)
        return found


def most_candidates(counts: list[int]) -> float:
    """Share of the pairs up to which screening documents of this many tokens pays."""
    return min(MOST_CANDIDATES, sum(counts) / max(1, len(counts)) / TOKENS_TO_GATHER_ALL)


def screened(
    hidden: Float[Tensor, "B L D"],
    weight: Float[Tensor, "V D"],
    bias: Float[Tensor, " V"],
    mask: Bool[Tensor, "B L"],
    opening: Float[Tensor, " V"],
    decoder: QuantisedDecoder,
) -> Candidates | None:
    """The pairs that can open, computed in full precision; None if they are too many."""
    counts = mask.sum(1)
    real = counts.nonzero().flatten()
    live_bias, live_opening = bias[decoder.words], opening[decoder.words]
    slack = 4 * torch.finfo(weight.dtype).eps * (live_bias.abs() + live_opening.abs())
    reach = decoder.reaching(hidden[mask], counts[real].tolist(), live_opening - live_bias - slack)
    if reach is None:
        return None
    columns, is_pair = padded_rows(reach)
    words = decoder.words[columns]
    states, padding = hidden[real].transpose(1, 2), ~mask[real][:, None]
    # Some columns at a time: one document with many candidates would make it [B, V, D].
    best = [
        (weight[some] @ states).masked_fill_(padding, -torch.inf).max(-1) for some in words.split(PAIR_CHUNK, dim=1)
    ]
    logits, positions = (torch.cat(parts, dim=1) for parts in zip(*best, strict=True))
    documents = real[:, None].expand_as(words)[is_pair]
    return Candidates(documents, words[is_pair], (logits + bias[words])[is_pair], positions[is_pair])


def _is_worth_trying(hidden: Tensor, weight: Tensor, mask: Tensor) -> bool:
    is_single = hidden.dtype == weight.dtype == torch.float32
    return is_single and int(mask.sum()) * weight.numel() >= SMALLEST_PROBLEM


def _row_marks(weight: Float[Tensor, "V D"]) -> Float[Tensor, " V"]:
    """One number per row that any change of the row changes."""
    return weight.detach() @ torch.randn(weight.shape[1], generator=torch.Generator().manual_seed(0)).to(weight)


def _equal(one: Tensor, other: Tensor) -> bool:
    return one.device == other.device and torch.equal(one, other)


def _to_integers(rows: Float[Tensor, "N D"], levels: int) -> tuple[Float[Tensor, "N D"], Float[Tensor, "N 1"]]:
    """Whole numbers of at most `levels` and a scale per row, whose product is the row up to rounding."""
    scales = rows.abs().amax(1, keepdim=True).clamp(min=torch.finfo(rows.dtype).tiny * 2**24) / levels
    return (rows / scales).round().clamp(-levels, levels), scales


def _quantised_documents(
    tokens: Float[Tensor, "N D"], counts: list[int], levels: int
) -> tuple[Int8[Tensor, "N D"], Float[Tensor, "B 1"], Float[Tensor, "B 1"], Float[Tensor, "B 1"]]:
    """Tokens in integers, with each document's scale, greatest rounding error and greatest norm.

    One scale per document: the greatest integer then is the greatest product.
    """
    lengths = torch.tensor(counts, device=tokens.device)
    smallest = torch.finfo(tokens.dtype).tiny * 2**24
    peaks = torch.stack([part.amax() for part in tokens.abs().amax(1).split(counts)]).clamp(min=smallest)
    scales = (peaks / levels)[:, None]
    per_token = scales.repeat_interleave(lengths, 0)
    states = (tokens / per_token).round().clamp(-levels, levels)
    errors, norms = (tokens - states * per_token).norm(dim=1), tokens.norm(dim=1)
    pooled = [torch.stack([part.amax() for part in values.split(counts)])[:, None] for values in (errors, norms)]
    return states.to(torch.int8), scales, pooled[0], pooled[1]


def _tiles(counts: list[int]) -> Iterator[tuple[slice, list[int]]]:
    """Whole documents together up to `TOKEN_TILE` tokens; a longer one alone."""
    start, lengths = 0, []
    for count in counts:
        if lengths and sum(lengths) + count > TOKEN_TILE:
            yield slice(start, start + sum(lengths)), lengths
            start, lengths = start + sum(lengths), []
        lengths.append(count)
    if lengths:
        yield slice(start, start + sum(lengths)), lengths
