"""How a model without literal words reads: hidden states > logits of the vocabulary > gate > saturation > words.

A document's words come by one of two routes with the same answer:
- logits are pooled over positions before the gate, which then never sees [B, L, V] (`document`);
- words at every position are pooled afterwards, where the pool or a cap per position asks for it (`sequence`).
A tagger reads chosen positions alone. Training and inference each have a form that leaves out what cannot matter.
"""

from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lexical_sae.models.encoded import EncodedDocument, EncodedSequence
from lexical_sae.models.layers.cut_words import NO_WORD
from lexical_sae.models.layers.screening import Candidates
from lexical_sae.models.sparse_code import SparseCode
from lexical_sae.types import TokenIds
from lexical_sae.utils.errors import SettingsError

if TYPE_CHECKING:
    from lexical_sae.models.lexical_sae import LexicalSAE

TokenFlags = Bool[Tensor, "B L"]
States = Float[Tensor, "B L E"]
Shapes = Bool[Tensor, "B L S"]


def sequence(
    model: "LexicalSAE", input_ids: TokenIds, mask: TokenFlags, states: States | None, shapes: Shapes | None
) -> EncodedSequence:
    """Every word at every position."""
    logits = word_logits(model, input_ids, mask, states, shapes)
    gate = model.gate(logits)
    words = model.topk(model.saturation(gate.activated))
    return EncodedSequence(_with_shapes(model, words, shapes), gate, logits)


def word_logits(
    model: "LexicalSAE",
    input_ids: TokenIds,
    mask: TokenFlags,
    states: States | None = None,
    shapes: Shapes | None = None,
) -> Float[Tensor, "B L V"]:
    """Logit of every dimension at every position; -inf at padding, which no gate opens."""
    hidden = _hidden(model, input_ids, mask, states, shapes)
    return _all_columns(model, model.projection.everywhere(hidden, input_ids, mask))


def max_logits(
    model: "LexicalSAE", input_ids: TokenIds, mask: TokenFlags, states: States | None
) -> Float[Tensor, "B V"]:
    """Greatest logit of every dimension over the real positions, sense slots included."""
    hidden = _hidden(model, input_ids, mask, states)
    return _all_columns(model, model.projection.pooled(hidden, input_ids, mask))


def document(
    model: "LexicalSAE", input_ids: TokenIds, mask: TokenFlags, states: States | None, *, live_only: bool
) -> EncodedDocument:
    """The words of each document, in training of a few columns alone; see `LexicalSAE.encode_document`."""
    if not pools_logits_first(model):
        encoded = model.encode(input_ids, mask, states)
        # Every field is non-decreasing in the logit, so its maximum is what the greatest logit gives.
        gate = encoded.gate.map(lambda field: field.amax(1))
        pooled = model.pool(encoded.sparse_sequence, mask)
        logits = encoded.logits.amax(1)
        return EncodedDocument(pooled, gate, logits, in_reach=_in_reach(model, logits))
    logits = model.max_logits(input_ids, mask, states)
    words = _live_words(model, logits, model.own_words(input_ids)) if live_only else None
    in_reach = _in_reach(model, logits)
    logits = logits if words is None else logits.index_select(1, words)
    gate = model.gate(logits, words)
    return EncodedDocument(model.saturation(gate.activated), gate, logits, words, in_reach)


def document_code(model: "LexicalSAE", input_ids: TokenIds, mask: TokenFlags, states: States | None) -> SparseCode:
    """The active words of each document with the positions that gave them; for inference."""
    if not pools_logits_first(model):
        at_positions = model.encode(input_ids, mask, states).sparse_sequence
        pooled = model.pool(at_positions, mask)
        rows, ids = pooled.nonzero(as_tuple=True)
        positions = at_positions[rows, :, ids].argmax(1) if model.pool.pools_logits_first else None
        return SparseCode.from_dense(pooled, positions)
    hidden = _hidden(model, input_ids, mask, states)
    return _code(model, model.projection.open_words(hidden, input_ids, mask), len(hidden))


def chosen_positions(
    model: "LexicalSAE",
    input_ids: TokenIds,
    mask: TokenFlags,
    chosen: TokenFlags,
    states: States | None,
    shapes: Shapes | None,
    *,
    live_only: bool,
) -> EncodedDocument:
    """The words of each chosen position, with gradients; see `LexicalSAE.encode_at`."""
    _refuse_literal(model)
    present = _required(model, shapes, chosen)
    hidden = _hidden(model, input_ids, mask, states, shapes)
    # All words without gradients and then the live ones with them, where few words can be computed alone.
    projection = model.projection
    twice = live_only and projection.computes_words_alone and model.gate.reach() is not None
    with torch.set_grad_enabled(torch.is_grad_enabled() and not twice):
        logits = _all_columns(model, projection.at(hidden, input_ids, chosen))
    words = _live_words(model, logits, model.own_words(input_ids)[chosen]) if live_only else None
    in_reach = _in_reach(model, logits)
    if words is not None and twice:
        named = words if model.shapes is None else words[: -len(model.shapes)]
        logits = _all_columns(model, projection.words_at(hidden, chosen, named))
    elif words is not None:
        logits = logits.index_select(1, words)
    gate = model.gate(logits, words)
    sparse = model.topk(model.saturation(gate.activated))
    return EncodedDocument(_with_shapes(model, sparse, present), gate, logits, words, in_reach)


def positions_code(
    model: "LexicalSAE",
    input_ids: TokenIds,
    mask: TokenFlags,
    chosen: TokenFlags,
    shapes: Shapes | None,
    states: States | None,
) -> SparseCode:
    """The active words of each chosen position; for inference. See `LexicalSAE.encode_positions`."""
    _refuse_literal(model)
    if chosen.dtype != torch.bool:
        raise SettingsError(f"chosen must be a mask of type bool, not {chosen.dtype}: as numbers it would be an index")
    if bool((chosen & ~mask).any()):
        raise SettingsError(
            f"{int((chosen & ~mask).sum())} of the chosen positions are padding: choose within the mask"
        )
    present = _required(model, shapes, chosen)
    hidden = _hidden(model, input_ids, mask, states, shapes)
    code = _code(model, model.projection.open_at(hidden, input_ids, chosen), int(chosen.sum()))
    if model.topk.k and not model.training:
        code = code.keep_strongest(model.topk.k)
    if model.shapes is None or present is None:
        return code
    return model.shapes.join(code, present, model.gate.closed, chosen.nonzero()[:, 1])


def pools_logits_first(model: "LexicalSAE") -> bool:
    """Whether documents may be pooled before the gate: not with attention, nor with a cap per position."""
    return model.pool.pools_logits_first and (model.training or model.topk.k == 0)


def _hidden(
    model: "LexicalSAE", input_ids: TokenIds, mask: TokenFlags, states: States | None, shapes: Shapes | None = None
) -> Float[Tensor, "B L D"]:
    """What the decoder multiplies, from the encoder's states where the caller has them."""
    if states is not None:
        return model.backbone.transform(states)
    return model.backbone.hidden(input_ids, mask, model.shape_inputs(shapes))


def _all_columns(model: "LexicalSAE", logits: Float[Tensor, "*batch W"]) -> Float[Tensor, "*batch V"]:
    """Logits of words with a place for each shape feature."""
    return logits if model.shapes is None else model.shapes.add_columns(logits)


def _code(model: "LexicalSAE", found: Candidates, rows: int) -> SparseCode:
    """The activations of the words that the gate opens."""
    values = model.saturation(model.gate(found.logits, found.words).activated)
    is_open = values != 0
    at, words, _, positions = (field[is_open] for field in found)
    return SparseCode.from_entries(at, words, values[is_open], positions, (rows, len(model.dimensions)))


def _live_words(
    model: "LexicalSAE", logits: Float[Tensor, "N V"], own: Int[Tensor, "*batch"]
) -> Int[Tensor, " K"] | None:
    """Dimensions that a training step on these samples can change, in their order; None if that may be all.

    A text's own words may be pushed to open from any distance below their threshold. Shapes know no thresholds.
    """
    live = model.gate.live_words(logits)
    if live is None:
        return None
    own = own[own != NO_WORD]
    live[own] |= ~model.gate.closed[own]
    if model.shapes is not None:
        live[model.shapes.first :] = True
    return live.nonzero().flatten()


def _in_reach(model: "LexicalSAE", logits: Float[Tensor, "N V"]) -> Bool[Tensor, " V"] | None:
    return None if model.neighbourhood is None else logits.detach().isfinite().any(0)


def _with_shapes(
    model: "LexicalSAE", words: Float[Tensor, "*batch V"], shapes: Bool[Tensor, "*batch S"] | None
) -> Float[Tensor, "*batch V"]:
    if model.shapes is None or shapes is None:
        return words
    return model.shapes.fill(words, shapes, model.gate.closed)


def _required(model: "LexicalSAE", shapes: Shapes | None, chosen: TokenFlags) -> Bool[Tensor, "N S"] | None:
    """Shapes of positions that are to be tagged: a tagger that was trained with them needs them."""
    if (model.shapes is None) == (shapes is None):
        return None if shapes is None else shapes[chosen]
    if shapes is None:
        raise SettingsError(
            "this model was made to see how words are written: give `shapes`, what model.shapes.describe(words) "
            "holds for each word at its first token"
        )
    raise SettingsError("this model has no shape features; leave `shapes` out, or set model.shapes in its settings")


def _refuse_literal(model: "LexicalSAE") -> None:
    if model.literal is not None:
        raise SettingsError(
            "a model with literal words decides on documents: a word's tag does not follow from the word alone. "
            "Tag with recipe: neighbours"
        )
