"""The place in the text where each active word won, and the contribution of each word of the text."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lexical_sae.explanation import SpanContribution
from lexical_sae.inference.methods import Shares
from lexical_sae.inference.reading import ReadTexts
from lexical_sae.mechanistic.span_aggregation import SpanScore, TextScores, score_texts
from lexical_sae.models.layers.cut_words import NO_WORD
from lexical_sae.models.layers.literal_words import occurrences
from lexical_sae.models.layers.pooling import AttentionPool
from lexical_sae.models.lexical_sae import LexicalSAE


class Place(NamedTuple):
    """Where one active word got its activation."""

    start: int | None = None
    end: int | None = None
    is_expansion: bool | None = None


class Places(NamedTuple):
    """One text's decision, in places."""

    of_word: Mapping[str, Place]
    spans: tuple[SpanContribution, ...]
    whole_text: float


def find_places(model: LexicalSAE, read: ReadTexts, shares: Shares) -> list[Places]:
    """The contributions of each text, shared out among its words."""
    parts = _occurrences(model, read) if model.literal is not None else _parts(model, read)
    scores = score_texts(read.state.code, shares.contributions, shares.biases, read.layouts, model.dimensions, parts)
    return [_places(score) for score in scores]


def find_literal_words(model: LexicalSAE, read: ReadTexts) -> list[dict[str, Place]]:
    """Where each word of a text stands, for models with literal words: `find_places` without sharing anything out.

    Whether a word is written there is not asked.
    """
    code = read.state.code
    names = [model.dimensions[i].name for i in code.ids.tolist()]
    found: list[dict[str, Place]] = [{} for _ in read.texts]
    for entry, row, position in zip(*_standing(model, read), strict=True):
        layout = read.layouts[row]
        word = layout.token_words[position]
        place = Place() if word is None else Place(*layout.word_spans[word])
        # A word at two places has none.
        if found[row].setdefault(names[entry], place) != place:
            found[row][names[entry]] = Place()
    return found


def _standing(model: LexicalSAE, read: ReadTexts) -> tuple[list[int], list[int], list[int]]:
    """Entry of the code, text and position of every occurrence that counts (`_occurrences`)."""
    code = read.state.code
    if code.defaults is None or not len(code.ids):
        return [], [], []
    device = code.ids.device
    own = model.own_words(read.batch.input_ids.to(device)).masked_fill(~read.batch.attention_mask.to(device), NO_WORD)
    rows, positions, words = occurrences(own)
    # Entries stand text by text and by dimension, so their keys ascend.
    keys, wanted = code.rows * code.size + code.ids, rows * code.size + words
    entries = torch.searchsorted(keys, wanted).clamp(max=len(keys) - 1)
    stands = (code.values == code.defaults)[entries] | (positions == code.positions[entries])
    counts = stands & (keys[entries] == wanted)
    return entries[counts].tolist(), rows[counts].tolist(), positions[counts].tolist()


def _places(scores: TextScores) -> Places:
    rows: defaultdict[str, list[SpanScore]] = defaultdict(list)
    expansions: dict[str, bool] = {}
    for span in (*scores.words, scores.whole_text):
        for feature in span.features:
            rows[feature.word].append(span)
            expansions[feature.word] = expansions.get(feature.word, True) and feature.is_expansion
    of_word = {word: Place(*_only_span(spans, scores.whole_text), expansions[word]) for word, spans in rows.items()}
    spans = tuple(SpanContribution(span.text, span.start, span.end, span.score) for span in scores.words)
    return Places(of_word, spans, scores.whole_text.score)


def _only_span(spans: Sequence[SpanScore], whole_text: SpanScore) -> tuple[int | None, int | None]:
    if len(spans) > 1 or spans[0] is whole_text:
        return None, None
    return spans[0].start, spans[0].end


def _occurrences(model: LexicalSAE, read: ReadTexts) -> list[Bool[Tensor, "L K"]] | None:
    """Which positions each literal word stands at; None where every word stands at one.

    The occurrences of a word at its default give the same each. A shifted word stands where it shifts most.
    """
    code = read.state.code
    own = model.own_words(read.batch.input_ids.to(code.ids.device))
    at_default = torch.ones_like(code.ids, dtype=torch.bool) if code.defaults is None else code.values == code.defaults
    parts = []
    for row, ids in enumerate(read.token_ids):
        here = code.text(row)
        stands = own[row, : len(ids), None] == code.ids[here]
        wins = torch.arange(len(ids), device=own.device)[:, None] == code.positions[here]
        # A bit for each until a text is scored: long texts have many words at many positions.
        parts.append((stands & at_default[here]) | wins)
    is_repeated = any(bool((part.sum(0) > 1).any()) for part in parts)
    return parts if is_repeated else None


def _parts(model: LexicalSAE, read: ReadTexts) -> list[Float[Tensor, "L K"]] | None:
    """How much each position gave of each active word, where several do; None where one wins."""
    if not isinstance(model.pool, AttentionPool):
        return None
    code = read.state.code
    mask = read.batch.attention_mask.to(code.ids.device)
    sequence = model.encode(read.batch.input_ids.to(mask.device), mask).sparse_sequence
    shares = model.pool.weights(sequence, mask)[..., None] * sequence
    return [shares[row, : len(ids), code.ids[code.text(row)]] for row, ids in enumerate(read.token_ids)]
