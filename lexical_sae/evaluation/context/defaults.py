"""What each word of a text would activate by default.

A model with explicit defaults has them by feature. For any other, the default of a word is estimated from its other
occurrences: the features active in at least half of them, at their mean activation there.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from lexical_sae.evaluation.context.model import ContextModel, Contributions
from lexical_sae.evaluation.context.words import ReadTexts, WordActivity, words_of, written_words
from lexical_sae.evaluation.names.model import NamedWord, Reading
from lexical_sae.utils.progress import OnStep, silent

USUAL = 0.5
"""Share of a word's other occurrences in which a default feature is active."""
FEW = 3
"""A word with no more occurrences is looked for in further texts."""


def read_texts(
    model: ContextModel,
    texts: Sequence[str],
    labels: Sequence[int],
    others: Sequence[str],
    num_classes: int,
    on_step: OnStep = silent,
) -> ReadTexts:
    """The texts, each word with its default; `others` are read only for defaults that must be estimated."""
    readings = model.contributions(texts, on_step)
    words = [words_of(reading, num_classes) for reading in readings]
    explicit = model.default_contributions(readings)
    if explicit is not None:
        pairs = zip(readings, explicit, strict=True)
        defaults = [words_of(_at_default(reading, parts), num_classes) for reading, parts in pairs]
    else:
        usual = _Usual(num_classes)
        for text in (*words, *(words_of(reading, num_classes) for reading in model.contributions(others, on_step))):
            usual.add(text)
        defaults = [usual.defaults(text) for text in words]
    return ReadTexts(readings, np.asarray(labels, dtype=np.int64), words, defaults, explicit is not None)


def _at_default(reading: Reading, parts: Sequence[Contributions]) -> Reading:
    """The reading with the default part of every contribution in its place."""
    words = zip(reading.words, parts, strict=True)
    placed = (replace(word, contributions=tuple(own), contribution=own[reading.label]) for word, own in words)
    return replace(reading, words=tuple(placed))


class _Usual:
    """Counts over texts of what each word activates."""

    def __init__(self, num_classes: int) -> None:
        self.texts: Counter[str] = Counter()
        self.active: dict[str, Counter[int]] = defaultdict(Counter)
        self.activation: dict[str, Counter[int]] = defaultdict(Counter)
        self.contributions: dict[str, Float[ndarray, " C"]] = defaultdict(lambda: np.zeros(num_classes))
        self.names: dict[int, str] = {}

    def add(self, text: Mapping[str, WordActivity]) -> None:
        for word, activity in text.items():
            self.texts[word] += 1
            self.contributions[word] = self.contributions[word] + activity.contributions
            for dimension, (name, activation) in _strongest(activity).items():
                self.active[word][dimension] += 1
                self.activation[word][dimension] += activation  # pyright: ignore[reportArgumentType]
                self.names[dimension] = name

    def defaults(self, text: Mapping[str, WordActivity]) -> dict[str, WordActivity]:
        """Of each word, from the other texts with it; the text itself must have been added."""
        return {word: self._default(word, own) for word, own in text.items() if self.texts[word] > 1}

    def _default(self, word: str, own: WordActivity) -> WordActivity:
        others, here = self.texts[word] - 1, _strongest(own)
        features = []
        for dimension, times in self.active[word].items():
            _, activation = here.get(dimension, ("", 0.0))
            active = times - (dimension in here)
            if active and active >= USUAL * others:
                mean = (self.activation[word][dimension] - activation) / active
                features.append(NamedWord(dimension, self.names[dimension], None, float(mean), (), 0.0))
        return WordActivity(tuple(features), (self.contributions[word] - own.contributions) / others)


def _strongest(activity: WordActivity) -> dict[int, tuple[str, float]]:
    """Name and greatest activation of each dimension of a word."""
    found: dict[int, tuple[str, float]] = {}
    for feature in activity.features:
        if feature.dimension not in found or feature.activation > found[feature.dimension][1]:
            found[feature.dimension] = feature.name, feature.activation
    return found


def texts_with_rare_words(texts: Sequence[str], corpus: Sequence[str], most: int, seed: int) -> list[str]:
    """A limited number of texts of a corpus with words that occur in too few of the texts to estimate their defaults.

    Frequent words have occurrences enough among the texts themselves.
    """
    seen = Counter(word for text in texts for word in written_words(text))
    chosen: list[str] = []
    for row in np.random.default_rng(seed).permutation(len(corpus)):
        if len(chosen) == most:
            break
        text = corpus[int(row)]
        words = written_words(text)
        if any(0 < seen[word] <= FEW for word in words):
            chosen.append(text)
            seen.update(word for word in words if word in seen)
    return chosen
