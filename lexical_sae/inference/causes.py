"""Which word of the text causes each shift by context: measured by leaving every other word out once, not proved.

The head of a model with literal words is linear, so that the context part of a word is in proportion to `factor - 1`,
where `factor = activation / default`. What leaving out one word takes away of that is its share, whatever label is
asked about. A word is left out, not masked: from "it was [MASK] bad" an encoder guesses "not".

In a text of several windows, all this is measured in the one window that gives the shifted word its state.
"""

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import torch

from lexical_sae.data.batches import TokenizedTexts, batches, pad_id
from lexical_sae.data.words import TextLayout
from lexical_sae.explanation import Cause
from lexical_sae.inference.reading import ReadTexts
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.literal_reading import read_words
from lexical_sae.models.long_texts import windows_of

NEAREST = 64
"""Words around a shifted word that are left out; one at a time."""
LEAST_SHARE = 0.5
"""A word causes a shift if without it at least so much of the context part is gone."""
NOTHING = -1
"""Stands for a word where none is left out."""
TEXTS_AT_ONCE = 64
"""Shortened texts in a batch."""


class Shifted(NamedTuple):
    """A word of a text that context shifts."""

    entry: int
    """Its place in the code of the batch."""
    row: int
    window: tuple[int, ...]
    """The tokens that the encoder reads with it: those of the text, or of one of its windows."""
    dimension: int
    change: float | None
    """Its activation as a multiple of the default, minus 1; None where the window alone has to be read to know it."""
    around: tuple[int, ...]
    """Words of the layout to leave out, the nearest first."""

    def left_out(self) -> tuple[int, ...]:
        """What the window is to be read without."""
        return self.around if self.change is not None else (NOTHING, *self.around)


def find_causes(read: ReadTexts) -> Mapping[int, Cause]:
    """The causes of shifts, by entry of the code; shifts that no single word accounts for have none."""
    shifted, layouts = list(_shifted(read)), read.layouts
    trials = sorted({(word.row, word.window, left_out) for word in shifted for left_out in word.left_out()})
    texts = [_without(layouts[row], left_out, window) for row, window, left_out in trials]
    readings = dict(zip(trials, _readings(read.model, texts), strict=True))
    causes: dict[int, Cause] = {}
    for word in shifted:
        change = word.change
        if change is None:
            there = readings[word.row, word.window, NOTHING].get(word.dimension)
            change = there.activation / there.default - 1 if there else 0.0
        if change == 0:
            # At the edge of its window the word may be cut.
            continue
        trial = {
            other: _share_left(word.dimension, change, readings[word.row, word.window, other]) for other in word.around
        }
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


def _share_left(dimension: int, change: float, reading: Mapping[int, Reading]) -> Left:
    there = reading.get(dimension)
    if there is None:
        # Where a script writes no spaces, a part of the word may go along, which is no evidence.
        return Left(1.0, 1.0)
    return Left(abs((there.activation / there.default - 1) / change), there.tendency)


def _shifted(read: ReadTexts) -> Iterator[Shifted]:
    code = read.state.code
    if code.defaults is None:
        return
    changes = code.values / code.defaults - 1
    own = read.model.own_words(read.batch.input_ids.to(code.ids.device)).tolist()
    rows, ids, positions = code.rows.tolist(), code.ids.tolist(), code.positions.tolist()
    windows = functools.cache(functools.partial(_windows, read))
    for entry in (code.values != code.defaults).nonzero().flatten().tolist():
        row, position = rows[entry], positions[entry]
        window = next(columns for columns, given in windows(row) if position in given)
        around = _nearest(read.layouts[row], own[row], ids[entry], position, window)
        is_whole = len(window) == len(read.layouts[row])
        yield Shifted(entry, row, window, ids[entry], float(changes[entry]) if is_whole else None, around)


def _windows(read: ReadTexts, row: int) -> list[tuple[tuple[int, ...], frozenset[int]]]:
    """The positions that each window of a text reads, and those whose states it gives."""
    count = len(read.layouts[row])
    ids = read.batch.input_ids[row : row + 1, :count].to(read.state.code.ids.device)
    windows = windows_of(read.model, ids, torch.ones_like(ids, dtype=torch.bool))
    if windows is None:
        return [(tuple(range(count)), frozenset(range(count)))]
    parts = zip(windows.columns, windows.mask, windows.gives, strict=True)
    return [(tuple(at[mask].tolist()), frozenset(at[gives].tolist())) for at, mask, gives in parts]


def _nearest(
    layout: TextLayout, own: Sequence[int], dimension: int, position: int, window: Sequence[int]
) -> tuple[int, ...]:
    """The words nearest to a position that are not the word there, itself or repeated; punctuation is no word."""
    same = {layout.token_words[i] for i in window if own[i] == dimension}
    read_with = {layout.token_words[i] for i in window}
    here = layout.token_words[position]
    others = [
        word
        for word, span in enumerate(layout.word_spans)
        if word in read_with and word not in same and any(map(str.isalnum, layout.written(span)))
    ]
    return tuple(sorted(others, key=lambda word: abs(word - (here or 0)))[:NEAREST])


def _without(layout: TextLayout, word: int, window: Sequence[int]) -> list[int]:
    """The tokens of a window but those of one word."""
    return [layout.token_ids[i] for i in window if layout.token_words[i] != word]


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
