"""The explorer's data of a model that is no table: contributions as the library computes them, and no arithmetic."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lexical_sae.data.batches import TokenizedTexts, pad_id
from lexical_sae.data.encoding import encode
from lexical_sae.data.tables.cell_values import repair_text
from lexical_sae.data.words import Span, TextLayout, layout_of
from lexical_sae.evaluation.collect import ReadBatch, read_corpus
from lexical_sae.explorer.packing import packed_counts, packed_floats
from lexical_sae.inference.labels import labels_of
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.utils.progress import OnStep

NOWHERE: Span = (0, 0)


def opaque_payload(model: LexicalSAE, texts: Sequence[str], on_step: OnStep) -> dict[str, Any]:
    """What each active word contributes to each class, where it stands, and the bias at each text."""
    clean = [repair_text(text) for text in texts]
    encoded = encode(model.tokenizer, clean, model.max_length)
    layouts = [layout_of(*pair) for pair in zip(clean, encoded, strict=True)]
    read = {row: (batch, i) for batch in read_corpus(model, clean, on_step=on_step) for i, row in enumerate(batch.rows)}
    codes = [_entries(*read[row]) for row in range(len(clean))]
    spans = [[_span(layouts[row], at) for at in positions] for row, (_, positions, _) in enumerate(codes)]
    dimensions = sorted({dimension for ids, _, _ in codes for dimension in ids})
    place = {dimension: i for i, dimension in enumerate(dimensions)}
    nothing = torch.zeros(0, len(labels_of(model)))
    return {
        "kind": "opaque",
        "words": {"names": model.dimensions.names(dimensions)},
        "texts": {
            "text": clean,
            "tokens_cut": packed_counts(TokenizedTexts.of(encoded, pad_id(model.tokenizer)).tokens_cut),
            "count": packed_counts([len(own) for own in spans]),
            "word": packed_counts([place[dimension] for ids, _, _ in codes for dimension in ids]),
            "start": packed_counts([start for own in spans for start, _ in own]),
            "length": packed_counts([end - start for own in spans for start, end in own]),
            "bias": packed_floats(torch.stack([nothing.sum(0), *(_bias(*read[row]) for row in range(len(clean)))])[1:]),
            "contribution": packed_floats(torch.cat([nothing, *(shares for _, _, shares in codes)])),
        },
    }


def _entries(batch: ReadBatch, i: int) -> tuple[list[int], list[int], Float[Tensor, "K C"]]:
    here = batch.state.code.text(i)
    code = batch.state.code
    return code.ids[here].tolist(), code.positions[here].tolist(), batch.contributions[here].float().cpu()


def _bias(batch: ReadBatch, i: int) -> Float[Tensor, " C"]:
    own = batch.state.b_eff[i].float().cpu()
    return own - own.mean()


def _span(layout: TextLayout, position: int) -> Span:
    """Where a token's word stands; nowhere if no single position gave the activation."""
    word = layout.token_words[position] if position >= 0 else None
    return NOWHERE if word is None else layout.word_spans[word]
