"""Words of a text, edits of a text, and which words are forms of one another. For English, and by rule of thumb."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from zlib import crc32

import numpy as np

from lexical_sae.data.language import FUNCTION_WORDS, NEGATIONS, stem, word_form
from lexical_sae.data.words import Span, word_spans
from lexical_sae.evaluation.names.model import NamedModel

SIMILAR_FREQUENCY = 2.0
"""A word may be swapped for one that is at most this many times as frequent, or as rare."""


def words_and_marks(text: str) -> list[str]:
    """Whole words and punctuation marks, in lower case. Example: `Isn't it? -> isn't, it, ?`."""
    return [text[start:end].casefold() for start, end in word_spans(text)]


def distinct_words(text: str) -> frozenset[str]:
    """The words of a text, and the parts of its contractions. Example: `The film's -> the, film's, film, s`."""
    whole = {word for word in words_and_marks(text) if word[0].isalnum()}
    return frozenset(whole | {part for word in whole for part in (word_form(word), *re.split("['’]", word))})


def span_around(spans: Sequence[Span], start: int, end: int) -> Span | None:
    """The word, or the run of words and marks, that these characters touch; None if they are only space.

    Example: in `unfilmable plot` the characters 2 to 6, `film`, give (0, 10).
    """
    touched = [span for span in spans if span[0] < end and start < span[1]]
    return (touched[0][0], touched[-1][1]) if touched else None


def replace_word(text: str, span: Span, replacement: str) -> str:
    """The text with a word replaced wherever it stands: a word that occurs twice is gone only when both are.

    Example: in `Good plot, good acting` the span of `good` and the replacement `bad` give `bad plot, bad acting`.
    """
    form = word_form(text[slice(*span)])
    places = {place for place in word_spans(text) if word_form(text[slice(*place)]) == form} | {span}
    for start, end in sorted(places, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def are_related_forms(word: str, other: str) -> bool:
    """Whether one word begins the other, or both have one stem."""
    a, b = word.casefold(), other.casefold()
    return a.startswith(b) or b.startswith(a) or stem(a) == stem(b)


def is_content_word(word: str) -> bool:
    """A word of three letters or more that is neither a function word nor a negation."""
    return len(word) > 2 and word.isalpha() and word not in FUNCTION_WORDS and word not in NEGATIONS


def seeded(seed: int, *texts: str) -> np.random.Generator:
    """Random numbers that depend on the seed and the texts alone, not on what was drawn before."""
    return np.random.default_rng([seed, *(crc32(text.encode("utf-8", "replace")) for text in texts)])


class SwapWords:
    """Content words that a word can be swapped for, by frequency in a corpus; each has a dimension that can open."""

    def __init__(self, model: NamedModel, corpus: Iterable[str], seed: int) -> None:
        self.seed = seed
        self.counts = Counter(word for text in corpus for word in words_and_marks(text))
        content = sorted((word for word in self.counts if is_content_word(word)), key=lambda w: (self.counts[w], w))
        named = zip(content, model.dimensions_of(content), strict=True)
        self.dimensions = {word: dimensions for word, dimensions in named if dimensions}
        self.words = list(self.dimensions)
        self.frequencies = [self.counts[word] for word in self.words]

    def choose(self, old: str, text: str) -> str | None:
        """A word about as frequent as `old`, not in the text and no form of `old`; None if the corpus has none.

        Where no content word is about as frequent (nothing is like "the"), the next rarer, or else the next commoner.
        """
        old, present = old.casefold(), distinct_words(text)

        def is_fit(i: int) -> bool:
            return self.words[i] not in present and not are_related_forms(self.words[i], old)

        frequency = max(1, self.counts[old])
        low = bisect_left(self.frequencies, frequency / SIMILAR_FREQUENCY)
        high = bisect_right(self.frequencies, frequency * SIMILAR_FREQUENCY)
        similar = (low + int(i) for i in seeded(self.seed, text, old).permutation(high - low))
        # The frequencies ascend. Content words are rarer than the words that have no like, so look there first.
        rarer, commoner = range(low - 1, -1, -1), range(high, len(self.words))
        for nearby in (similar, rarer, commoner):
            found = next((i for i in nearby if is_fit(i)), None)
            if found is not None:
                return self.words[found]
        return None
