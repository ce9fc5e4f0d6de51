"""What each input word of a text activates."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from lexical_sae.data.language import word_form
from lexical_sae.data.words import word_spans
from lexical_sae.evaluation.names.model import NamedWord, Reading

SPECIAL = ""
"""Stands for the special tokens of a text, which every text has."""


@dataclass(frozen=True)
class WordActivity:
    """The features that one word of a text activates, all its occurrences together."""

    features: tuple[NamedWord, ...]
    contributions: Float[ndarray, " C"]
    """Class-centred, summed over the features."""


def words_of(reading: Reading, num_classes: int) -> dict[str, WordActivity]:
    """What each written word of a text activates, and the special tokens; nothing, for many words.

    Example: `Good plot, good acting` -> the words `good`, `plot`, `,`, `acting` and `SPECIAL`
    """
    found: dict[str, list[NamedWord]] = {SPECIAL: []}
    for span in word_spans(reading.text):
        found.setdefault(word_form(reading.text[slice(*span)]), [])
    for feature in reading.words:
        word = SPECIAL if feature.span is None else word_form(reading.text[slice(*feature.span)])
        found.setdefault(word, []).append(feature)
    return {word: _activity(features, num_classes) for word, features in found.items()}


def _activity(features: Sequence[NamedWord], num_classes: int) -> WordActivity:
    total = np.zeros(num_classes)
    for feature in features:
        if feature.contributions:
            total += feature.contributions
    return WordActivity(tuple(features), total)


@dataclass(frozen=True)
class ReadTexts:
    """Labelled texts as the model reads them, word by word."""

    readings: list[Reading]
    labels: Int[ndarray, " T"]
    words: list[dict[str, WordActivity]]
    """Per text, what each of its words activates."""
    defaults: list[dict[str, WordActivity]]
    """Per text, the same context-free; a word without another occurrence has none where defaults are estimated."""
    is_explicit: bool
    """Whether the defaults are the model's own."""

    def __len__(self) -> int:
        return len(self.readings)

    def features(self, chosen: Iterable[str] | None = None, *, at_default: bool = False) -> list[list[NamedWord]]:
        """Per text, the features of the chosen words, by default of all."""
        known = None if chosen is None else frozenset(chosen)
        return [
            [
                feature
                for word, activity in text.items()
                if known is None or word in known
                for feature in activity.features
            ]
            for text in (self.defaults if at_default else self.words)
        ]


def written_words(text: str) -> frozenset[str]:
    """The forms of a text's words and marks."""
    return frozenset(word_form(text[slice(*span)]) for span in word_spans(text))
