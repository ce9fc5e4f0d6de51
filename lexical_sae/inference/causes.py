"""Which word of the text causes each shift by context: measured by leaving every other word out once, not proved.

The head of a model with literal words is linear, so that the context part of a word is in proportion to `factor - 1`,
where `factor = activation / default`. What leaving out one word takes away of that is its share, whatever label is
asked about. A word is left out, not masked: from "it was [MASK] bad" an encoder guesses "not".
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import torch

from lexical_sae.data.batches import TokenizedTexts, batches, pad_id
from lexical_sae.data.words import TextLayout
from lexical_sae.explanation import Cause
from lexical_sae.inference.reading import ReadTexts
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.literal_reading import read_words

NEAREST = 64
"""Words around a shifted word that are left out; one at a time."""
LEAST_SHARE = 0.5
"""A word causes a shift if without it at least so much of the context part is gone."""
TEXTS_AT_ONCE = 64
"""Shortened texts in a batch."""


class Shifted(NamedTuple):
    """A word of a text that context shifts."""

    entry: int
    """Its place in the code of the batch."""
    row: int
    dimension: int
    change: float
    """Its activation as a multiple of the default, minus 1."""
    around: tuple[int, ...]
    """Words of the layout to leave out, the nearest first."""


def find_causes(read: ReadTexts) -> Mapping[int, Cause]:
    """The causes of shifts, by entry of the code; shifts that no single word accounts for have none."""
    shifted, layouts = list(_shifted(read)), read.layouts
    trials = sorted({(word.row, left_out) for word in shifted for left_out in word.around})
    texts = [_without(layouts[row], word) for row, word in trials]
    readings = dict(zip(trials, _readings(read.model, texts), strict=True))
    causes: dict[int, Cause] = {}
    for word in shifted:
        trial = {other: _share_left(word, readings[word.row, other]) for other in word.around}
        best = min(trial, key=lambda other: trial[other], default=None)
        if best is not None and 1 - trial[best].context >= LEAST_SHARE:
            layout = layouts[word.row]
            start, end = layout.word_spans[best]
            causes[word.entry] = Cause(layout.written((start, end)), start, end, 1 - trial[best].context)
    return causes


class Left(NamedTuple):
    """What is left of a shift when a word is left out; of several that leave nothing, some leave less of a tendency."""

    context: float
    """Share of the context part."""
    tendency: float
    """How near the word still is to shifting: a change below the dead zone does not act, but it is there."""


class Reading(NamedTuple):
    """A word of a shortened text."""

    activation: float
    default: float
    tendency: float


def _share_left(word: Shifted, reading: Mapping[int, Reading]) -> Left:
    there = reading.get(word.dimension)
    if there is None:
        # Where a script writes no spaces, a part of the word may go along, which is no evidence.
        return Left(1.0, 1.0)
    return Left(abs((there.activation / there.default - 1) / word.change), there.tendency)


def _shifted(read: ReadTexts) -> Iterator[Shifted]:
    code = read.state.code
    if code.defaults is None:
        return
    changes = code.values / code.defaults - 1
    own = read.model.own_words(read.batch.input_ids.to(code.ids.device)).tolist()
    rows, ids, positions = code.rows.tolist(), code.ids.tolist(), code.positions.tolist()
    for entry in (code.values != code.defaults).nonzero().flatten().tolist():
        row = rows[entry]
        around = _nearest(read.layouts[row], own[row], ids[entry], positions[entry])
        yield Shifted(entry, row, ids[entry], float(changes[entry]), around)


def _nearest(layout: TextLayout, own: Sequence[int], dimension: int, position: int) -> tuple[int, ...]:
    """The words nearest to a position that are not the word there, itself or repeated; punctuation is no word."""
    same = {layout.token_words[i] for i in range(len(layout)) if own[i] == dimension}
    here = layout.token_words[position]
    others = [
        word
        for word, span in enumerate(layout.word_spans)
        if word not in same and any(map(str.isalnum, layout.written(span)))
    ]
    return tuple(sorted(others, key=lambda word: abs(word - (here or 0)))[:NEAREST])


def _without(layout: TextLayout, word: int) -> list[int]:
    """The tokens of a text but those of one word."""
    return [token for token, at in zip(layout.token_ids, layout.token_words, strict=True) if at != word]


@torch.no_grad()
def _readings(model: LexicalSAE, texts: Sequence[list[int]]) -> list[dict[int, Reading]]:
    """The words of tokenised texts, by dimension."""
    found: list[dict[int, Reading]] = [{} for _ in texts]
    device = next(model.parameters()).device
    tokenized = TokenizedTexts(tuple(texts), (0,) * len(texts), pad_id(model.tokenizer))
    for batch in batches(tokenized, TEXTS_AT_ONCE):
        rows = batch.rows.tolist()
        read = read_words(model, batch.input_ids.to(device), batch.attention_mask.to(device), None)
        entries = (read.rows, read.words, read.activations, read.defaults, read.shifts.smooth_count)
        for at, word, activation, default, tendency in zip(*(part.tolist() for part in entries), strict=True):
            had = found[rows[at]].get(word, Reading(0.0, 0.0, 0.0))
            found[rows[at]][word] = Reading(
                had.activation + activation, had.default + default, max(had.tendency, tendency)
            )
    return found
