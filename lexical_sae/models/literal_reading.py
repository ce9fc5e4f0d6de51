"""How a model with literal words reads: text > words > default activation, moved by context > table.

Every written word is a feature. By default its activation is the same for all words of a text, `sqrt(16 / tokens)`: in
a long text each word counts less. Context multiplies it by a factor (`ContextShift`), exactly 1 for most words. A word
that occurs several times has the mean over its occurrences.
"""

from typing import TYPE_CHECKING, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lexical_sae.models.encoded import EncodedDocument, EncodedSequence
from lexical_sae.models.layers.activation import GateOutput
from lexical_sae.models.layers.context_shift import Shifts
from lexical_sae.models.layers.cut_words import NO_WORD
from lexical_sae.models.layers.literal_words import occurrences
from lexical_sae.models.sparse_code import SparseCode
from lexical_sae.types import TokenIds

if TYPE_CHECKING:
    from lexical_sae.models.lexical_sae import LexicalSAE

USUAL_TOKENS = 16.0
"""A text of so many tokens, special ones included, has a default activation of 1."""


class WordsRead(NamedTuple):
    """Every occurrence of a feature in a batch, text by text, in reading order."""

    rows: Int[Tensor, " N"]
    positions: Int[Tensor, " N"]
    words: Int[Tensor, " N"]
    defaults: Float[Tensor, " N"]
    """What the occurrence adds to the activation of its word, without context."""
    shifts: Shifts

    @property
    def activations(self) -> Float[Tensor, " N"]:
        """The same with context."""
        return self.defaults * self.shifts.factor


def read_words(
    model: "LexicalSAE",
    input_ids: TokenIds,
    mask: Bool[Tensor, "B L"],
    states: Float[Tensor, "B L E"] | None,
    *,
    defaults_only: bool = False,
    is_read: Bool[Tensor, "B L"] | None = None,
) -> WordsRead:
    """The words of a batch with their activations; `states` are the encoder's, if they are there already.

    `defaults_only` leaves context out: no encoder is asked. `is_read` says at which positions `states` are known;
    words elsewhere keep their default.
    """
    assert model.literal is not None
    words = model.own_words(input_ids).masked_fill(~mask, NO_WORD)
    words = words.masked_fill(model.gate.closed[words.clamp(min=0)], NO_WORD)
    rows, positions, found = occurrences(words)
    scale = default_activation(mask.sum(1), next(model.heads.parameters()).dtype)
    _, pair, count = (rows * len(model.gate.closed) + found).unique(return_inverse=True, return_counts=True)
    defaults = scale[rows] / count[pair]
    if model.context is None or defaults_only:
        return WordsRead(rows, positions, found, defaults, _unmoved(defaults))
    if states is None:
        states = model.encoder_states(input_ids, mask)
    at_words = model.literal.word_states(states, input_ids, words != NO_WORD)
    shifts = model.context(at_words, found)
    if is_read is not None:
        read_here = is_read[rows, positions]
        shifts = Shifts(
            *(kept.where(read_here, default) for kept, default in zip(shifts, _unmoved(defaults), strict=True))
        )
    return WordsRead(rows, positions, found, defaults, shifts)


def literal_sequence(
    model: "LexicalSAE", input_ids: TokenIds, mask: Bool[Tensor, "B L"], states: Float[Tensor, "B L E"] | None
) -> EncodedSequence:
    """Every word at its position, with its share of the word's activation in the document: the slow form."""
    read = read_words(model, input_ids, mask, states)
    at = (read.rows, read.positions, read.words)
    logits = read.defaults.new_full((*input_ids.shape, len(model.dimensions)), -torch.inf).index_put(
        at, torch.zeros_like(read.defaults)
    )
    nothing = torch.zeros_like(logits)
    return EncodedSequence(nothing.index_put(at, read.activations), model.gate(logits), logits)


def literal_document(
    model: "LexicalSAE",
    input_ids: TokenIds,
    mask: Bool[Tensor, "B L"],
    states: Float[Tensor, "B L E"] | None,
    is_read: Bool[Tensor, "B L"] | None,
    *,
    live_only: bool,
) -> EncodedDocument:
    """The activation of every word; the gate reports which of them context shifted, and how nearly."""
    read = read_words(model, input_ids, mask, states, is_read=is_read)
    live, columns = read.words.unique(return_inverse=True)
    words, columns = (live, columns) if live_only else (None, read.words)
    shape = (len(input_ids), len(live) if live_only else len(model.dimensions))
    nothing = read.activations.new_zeros(shape)
    at = (read.rows, columns)
    activations = nothing.index_put(at, read.activations, accumulate=True)
    place = read.rows * shape[1] + columns
    shifted, smooth = (
        nothing.flatten().scatter_reduce(0, place, part, "amax").view(shape)
        for part in (read.shifts.is_shifted.to(nothing.dtype), read.shifts.smooth_count)
    )
    logits = torch.full_like(nothing, -torch.inf).index_put(at, torch.zeros_like(read.defaults))
    return EncodedDocument(activations, GateOutput(activations, shifted, smooth), logits, words)


def default_activation(tokens: Int[Tensor, " B"], dtype: torch.dtype = torch.float32) -> Float[Tensor, " B"]:
    """The activation of every word of texts of so many tokens, without context. Example: 64 tokens -> 0.5"""
    return (USUAL_TOKENS / tokens.clamp(min=1).to(dtype)).sqrt()


def _unmoved(defaults: Float[Tensor, " N"]) -> Shifts:
    return Shifts(torch.ones_like(defaults), torch.zeros_like(defaults, dtype=torch.bool), torch.zeros_like(defaults))


def sparse_code(read: WordsRead, shape: tuple[int, int]) -> SparseCode:
    """The words of each text with their activations and defaults; a word stands where it shifted most, or first.

    A word that context switches off is left out, as a closed one is.
    """
    pairs, pair = (read.rows * shape[1] + read.words).unique(return_inverse=True)
    values, defaults = (
        part.new_zeros(len(pairs)).index_add_(0, pair, part) for part in (read.activations, read.defaults)
    )
    # Most shifted first, then by text and word: both sorts are stable, so the first of equals comes first.
    by_shift = torch.argsort((read.shifts.factor - 1).abs(), descending=True, stable=True)
    order = by_shift[torch.argsort(pair[by_shift], stable=True)]
    is_first = torch.ones_like(order, dtype=torch.bool)
    is_first[1:] = pair[order][1:] != pair[order][:-1]
    positions = read.positions[order[is_first]]
    kept = values != 0
    rows, ids = pairs[kept] // shape[1], pairs[kept] % shape[1]
    counts = torch.bincount(rows, minlength=shape[0])
    offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return SparseCode(ids, values[kept], positions[kept], offsets, shape[1], defaults[kept])
