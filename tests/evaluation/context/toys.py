"""Models of context that a person can compute by hand."""

from collections.abc import Callable, Sequence

import numpy as np

from lexical_sae.data.words import word_spans
from lexical_sae.evaluation.names.model import NamedWord, Reading, Response

Entry = tuple[str, int, float, float]
"""Input word, dimension, activation, contribution to class 1 (class 0 gets the opposite)."""


class Toy:
    """Two classes; `entries` says what a text activates, and the contribution of class 1 is `activation * weight`."""

    blank = "[MASK]"

    def __init__(self, activate: Callable[[list[str]], list[tuple[str, int, float]]], weights: dict[int, float]):
        self.activate, self.weights = activate, weights

    def as_read(self, texts):
        return list(texts)

    def contributions(self, texts, on_step=None):
        del on_step
        return [self._read(text) for text in texts]

    read_edited = contributions

    def decide(self, texts: Sequence[Sequence[NamedWord]]):
        # As a head does: dimension and activation alone; of several of one dimension the greatest.
        found = []
        for words in texts:
            activation = {}
            for word in words:
                activation[word.dimension] = max(word.activation, activation.get(word.dimension, 0.0))
            found.append(sum(self.weights[i] * value for i, value in activation.items()))
        return np.array([[-value, value] for value in found]).reshape(len(texts), 2)

    def default_contributions(self, readings):
        del readings

    def responses(self, probes, on_step=None):
        del on_step
        return [Response(0.0, 0.0) for _ in probes]

    def dimensions_of(self, words):
        return [() for _ in words]

    def neighbours(self, dimensions, k):
        del k
        return {i: frozenset() for i in dimensions}

    def _read(self, text: str) -> Reading:
        spans = {}
        for start, end in word_spans(text):
            spans.setdefault(text[start:end], (start, end))
        found = []
        for word, dimension, activation in self.activate(list(spans)):
            if not activation:
                continue
            value = activation * self.weights[dimension]
            found.append((dimension, word, spans[word], activation, value))
        label = int(sum(value for *_, value in found) > 0)
        words = [
            NamedWord(dimension, word, span, activation, (-value, value), (-value, value)[label])
            for dimension, word, span, activation, value in found
        ]
        return Reading(text, label, tuple(words), frozenset())


class Table(Toy):
    """Literal words with explicit defaults: `table` gives each word's row, `shift` what context adds to it."""

    def __init__(self, table: dict[str, float], shift: Callable[[str, list[str]], float] = lambda *_: 0.0):
        self.table, self.shift = table, shift

    def decide(self, texts):
        sums = [sum(word.contributions[1] for word in words) for words in texts]
        return np.array([[-value, value] for value in sums]).reshape(len(texts), 2)

    def default_contributions(self, readings):
        return [[(-self.table[word.name], self.table[word.name]) for word in reading.words] for reading in readings]

    def _read(self, text: str) -> Reading:
        spans = {}
        for start, end in word_spans(text):
            spans.setdefault(text[start:end], (start, end))
        values = {word: self.table[word] + self.shift(word, list(spans)) for word in spans if word in self.table}
        label = int(sum(values.values()) > 0)
        words = [
            NamedWord(list(self.table).index(word), word, spans[word], 1.0, (-v, v), (-v, v)[label])
            for word, v in values.items()
        ]
        return Reading(text, label, tuple(words), frozenset())


GOOD, BAD = ("good", "great", "wonderful", "happy"), ("bad", "awful", "terrible", "boring")
THINGS = ("story", "music", "plot", "acting", "city", "church", "bank", "river", "money", "dog")


def reviews(count: int = 200, seed: int = 0) -> tuple[list[str], list[int]]:
    """Texts whose class is that of their adjective; every noun is in as many texts of either."""
    random = np.random.default_rng(seed)
    texts, labels = [], []
    for i in range(count):
        label = i % 2
        adjective, noun = random.choice(GOOD if label else BAD), THINGS[i // 2 % len(THINGS)]
        texts.append(f"the {noun} was {adjective}")
        labels.append(label)
    return texts, labels
