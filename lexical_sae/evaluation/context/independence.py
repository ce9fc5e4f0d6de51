"""Independence: mask one word, and see how much the contributions of the other words change."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from lexical_sae.data.language import word_form
from lexical_sae.evaluation.bootstrap import BootstrapMeans
from lexical_sae.evaluation.context.model import ContextModel
from lexical_sae.evaluation.context.words import SPECIAL, WordActivity, words_of
from lexical_sae.evaluation.intervals import Interval
from lexical_sae.evaluation.names.model import Reading, Span
from lexical_sae.evaluation.names.text import replace_word
from lexical_sae.utils.progress import OnStep, silent


@dataclass(frozen=True)
class IndependenceScores:
    """How far words depend on one another; 0 for a bag of words."""

    change: Interval
    """Sum of |change| in the other words' contributions / |contribution| of the word that was masked."""


def measure_independence(
    model: ContextModel, readings: Sequence[Reading], num_classes: int, seed: int = 0, on_step: OnStep = silent
) -> IndependenceScores:
    """The top-attributed word of each text is masked wherever it occurs; contributions are to the predicted class.

    The ratio is of sums over texts: a text whose top word carries much counts for more.
    """
    before = [words_of(reading, num_classes) for reading in readings]
    places = [_top_span(reading, words) for reading, words in zip(readings, before, strict=True)]
    rows = [row for row, place in enumerate(places) if place is not None]
    edited = [replace_word(readings[row].text, place, model.blank) for row in rows if (place := places[row])]
    changes, carried = np.full(len(readings), np.nan), np.full(len(readings), np.nan)
    for row, after in zip(rows, model.read_edited(edited, on_step), strict=True):
        text, label, place = readings[row].text, readings[row].label, places[row]
        assert place is not None
        masked = word_form(text[slice(*place)])
        carried[row] = abs(before[row][masked].contributions[label])
        ignored = {masked, word_form(model.blank.strip())}
        changes[row] = change_between(before[row], words_of(after, num_classes), label, ignored)
    means = BootstrapMeans(seed=seed)
    means.update(range(len(readings)), {"change": torch.from_numpy(changes), "carried": torch.from_numpy(carried)})
    return IndependenceScores(means.ratio("change", "carried"))


def change_between(
    before: dict[str, WordActivity], after: dict[str, WordActivity], label: int, ignored: set[str]
) -> float:
    """Sum over all words but the ignored of how much their contributions to a class differ."""
    total = 0.0
    for word in (before.keys() | after.keys()) - ignored:
        old, new = (words[word].contributions[label] if word in words else 0.0 for words in (before, after))
        total += abs(new - old)
    return float(total)


def _top_span(reading: Reading, words: dict[str, WordActivity]) -> Span | None:
    """Where the word with the greatest |contribution| to the predicted class stands; None without one."""
    sizes = {word: abs(own.contributions[reading.label]) for word, own in words.items() if word != SPECIAL}
    top = max(sizes, key=lambda word: sizes[word], default=None)
    if top is None or sizes[top] == 0:
        return None
    return next(feature.span for feature in words[top].features if feature.span is not None)
