"""Explanations as rows of a scored table."""

import math
from collections.abc import Sequence

import pyarrow as pa

from lexical_sae.explanation import Explanation, WordContribution
from lexical_sae.scale.schema import WORD, About, Places, scored_schema


def record_batch(
    explanations: Sequence[Explanation], places: Places, about: About, kept: pa.RecordBatch | None = None
) -> pa.RecordBatch:
    """The rows of some explanations, in their order.

    Args:
        explanations: Of the prediction against the mean of all labels, with effects; word pieces and symbols are
            listed where `all_tokens` is set.
        places: Where each text came from.
        about: What the file says about itself; decides which words are listed.
        kept: Columns of the input to keep, a row per explanation.
    """
    words = None if about.explain == "none" else [_listed(why, about) for why in explanations]
    listed = words or [[] for _ in explanations]
    columns = {
        "row_id": places.ids,
        "source": pa.repeat(pa.scalar(places.source), len(places)),
        "source_row": places.rows,
        "label": pa.nulls(len(places), pa.string()) if places.labels is None else places.labels,
        "prediction": [why.most_probable for why in explanations],
        "probability": [why.probability for why in explanations],
        "probabilities": [[share for _, share in why.probabilities] for why in explanations],
        "explained": [why.explained for why in explanations],
        "bias": [why.bias for why in explanations],
        "words": None if words is None else _words(words),
        "rest": [_rest(why, own) for why, own in zip(explanations, listed, strict=True)],
        "num_words": [len(why.words) + (why.pieces.count if why.pieces else 0) for why in explanations],
        "tokens_cut": [why.tokens_cut for why in explanations],
        "warnings": [[warning.kind for warning in why.warnings] for why in explanations],
        "model": pa.repeat(pa.scalar(about.model), len(places)),
    }
    if words is None:
        columns |= {name: pa.nulls(len(places), kind) for name, kind in _UNEXPLAINED.items()}
    schema = scored_schema(about, None if kept is None else kept.schema)
    own = [_array(columns[field.name], field.type) for field in list(schema)[: len(columns)]]
    return pa.RecordBatch.from_arrays([*own, *([] if kept is None else kept.columns)], schema=schema)


_UNEXPLAINED = {"words": pa.list_(WORD), "rest": pa.float32(), "num_words": pa.int32()}


def _array(values: object, kind: pa.DataType) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values, kind)


def _listed(why: Explanation, about: About) -> Sequence[WordContribution]:
    return why.listed().words[: about.top]


def _rest(why: Explanation, listed: Sequence[WordContribution]) -> float:
    of_pieces = why.pieces.contribution if why.pieces else 0.0
    everything = math.fsum([of_pieces, *(word.contribution for word in why.words)])
    return everything - math.fsum(word.contribution for word in listed)


def _words(texts: Sequence[Sequence[WordContribution]]) -> pa.Array:
    """The words of all texts in one piece of memory."""
    flat = [word for words in texts for word in words]
    fields = [pa.array([getattr(word, field.name) for word in flat], field.type) for field in WORD]
    offsets = [0]
    for words in texts:
        offsets.append(offsets[-1] + len(words))
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.StructArray.from_arrays(fields, fields=list(WORD)), type=pa.list_(WORD)
    )
