"""Presence: does a word's dimension fire where the word, or a form of it, is written, and not elsewhere?

For every word, over many texts: the AUC of its activation (zero where it is not active) for detecting texts that hold
the word. One half is chance. The mean over words is weighed by |contribution|. Beside it stands the
same for shuffled names: each word is given the name of another that is about as frequent in the texts.

Texts stream by. What is kept is a histogram of activations per word, not the activations, so that memory depends on the
number of words and not of texts.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from lexical_sae.data.language import SHORT_NOT, stem
from lexical_sae.evaluation.intervals import share_interval
from lexical_sae.evaluation.names.edits import Rate
from lexical_sae.evaluation.names.model import NamedModel, NamedWord, Reading
from lexical_sae.evaluation.names.shares import base_name
from lexical_sae.evaluation.names.text import distinct_words
from lexical_sae.utils.progress import OnStep, Step, silent

FEWEST = 5
"""Texts with the word, and without it, that an AUC needs."""
SHOWN = 30
EDGES = np.geomspace(1e-4, 1e3, 141)
"""Activations are binned by an eighth of their size; those in one bin count as equal."""
CHUNK = 128
OWN, OTHER = 0, 1


@dataclass(frozen=True)
class WordPresence:
    """One word: how well its activation detects where it is written."""

    name: str
    auc: float
    texts: int
    """Texts that hold the word or a form of it."""
    weight: float
    """Sum of its |contributions|."""


@dataclass(frozen=True)
class PresenceScores:
    """AUC over words, weighed by |contribution|, with the interval over words."""

    texts: int
    auc: Rate
    shuffled: Rate
    """When every word has the name of another."""
    words: tuple[WordPresence, ...]
    """Those with most weight."""


class PresenceCollector:
    """Counts, text by text, how strong each word is where its name is written and where not."""

    def __init__(self, texts: Sequence[str], seed: int = 0) -> None:
        self.texts = 0
        self.with_stem = Counter(form for text in texts for form in stems_of(text))
        self.other = _partners(self.with_stem, seed)
        self.names: dict[int, str] = {}
        self.weights: dict[int, float] = {}
        self._counts: dict[int, Int[ndarray, "2 2 B"]] = {}

    def update(self, reading: Reading) -> None:
        """Add a text; it must be one of those that the collector was made for."""
        self.texts += 1
        present = stems_of(reading.text)
        for word in reading.words:
            name = base_name(word)
            if not (name.isalpha() or name == SHORT_NOT):
                continue
            own = stem(name)
            counts = self._of(word, name)
            at = int(np.searchsorted(EDGES, abs(word.activation)))
            counts[OWN, int(own in present), at] += 1
            counts[OTHER, int(self.other.get(own) in present), at] += 1
            self.weights[word.dimension] = self.weights.get(word.dimension, 0.0) + abs(word.contribution)

    def result(self) -> PresenceScores:
        """The scores of all words that occur often enough."""
        own, shuffled = (self._words(which) for which in (OWN, OTHER))
        heaviest = sorted(own, key=lambda word: (-word.weight, word.name))[:SHOWN]
        return PresenceScores(self.texts, _mean(own), _mean(shuffled), tuple(heaviest))

    def _of(self, word: NamedWord, name: str) -> Int[ndarray, "2 2 B"]:
        self.names[word.dimension] = name
        return self._counts.setdefault(word.dimension, np.zeros((2, 2, len(EDGES) + 1), dtype=np.int64))

    def _words(self, which: int) -> list[WordPresence]:
        found = []
        for dimension, counts in self._counts.items():
            form = stem(self.names[dimension])
            total = self.with_stem[form if which == OWN else self.other.get(form, "")]
            if FEWEST <= total <= self.texts - FEWEST:
                auc = histogram_auc(counts[which, 1], counts[which, 0], total, self.texts - total)
                found.append(WordPresence(self.names[dimension], auc, total, self.weights[dimension]))
        return found


def histogram_auc(with_word: Int[ndarray, " B"], without: Int[ndarray, " B"], num_with: int, num_without: int) -> float:
    """Chance that a text with the word is stronger in it than a text without; equal ones count half.

    The histograms hold active texts, from weak to strong; the others have activation zero.

    Example: active in 2 of 2 texts with the word and in 1 of 4 without, equally strong: 0.75 + 0.25 / 2 = 0.875
    """
    positive = np.concatenate([[num_with - with_word.sum()], with_word]).astype(float)
    negative = np.concatenate([[num_without - without.sum()], without]).astype(float)
    weaker = np.concatenate([[0.0], negative.cumsum()[:-1]])
    return float(positive @ (weaker + negative / 2) / (num_with * num_without))


def measure_presence(
    model: NamedModel, texts: Sequence[str], seed: int = 0, on_step: OnStep = silent
) -> PresenceScores:
    """Presence of every word that the model shows, over the texts as far as it reads them."""
    texts = model.as_read(texts)
    collector = PresenceCollector(texts, seed)
    for start in range(0, len(texts), CHUNK):
        chunk = texts[start : start + CHUNK]
        for reading in model.contributions(chunk):
            collector.update(reading)
        on_step(Step("where words are written", start + len(chunk), len(texts)))
    return collector.result()


def stems_of(text: str) -> frozenset[str]:
    """The stems of a text's words. Example: `The films ran -> the, film, ran`."""
    return frozenset(stem(word) for word in distinct_words(text))


def _partners(counts: Mapping[str, int], seed: int) -> dict[str, str]:
    """For each stem another about as frequent: its neighbour by frequency, in an order where equals lie at random."""
    random = np.random.default_rng(seed)
    stems = [form for form, count in sorted(counts.items()) if count >= FEWEST]
    draws = random.random(len(stems))
    order = [stems[i] for i in sorted(range(len(stems)), key=lambda i: (counts[stems[i]], draws[i]))]
    return dict(zip(order, [*order[1:], *order[:1]], strict=True)) if len(order) > 1 else {}


def _mean(words: Sequence[WordPresence]) -> Rate:
    wholes = [word.weight for word in words]
    parts = [word.weight * word.auc for word in words]
    if sum(wholes) <= 0:
        return Rate(None, len(words))
    return Rate(sum(parts) / sum(wholes), len(words), *share_interval(parts, wholes))
