"""Where the contributions lie: on words of the text, near it, on function words; and whether a word keeps its sign.

Shares are over all active words, weighed by |contribution| to the predicted class.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lexical_sae.data.language import is_function_word, stem
from lexical_sae.data.vocabulary import CONTINUATION
from lexical_sae.evaluation.names.edits import Rate, weighed
from lexical_sae.evaluation.names.model import NamedModel, NamedWord, Reading
from lexical_sae.evaluation.names.text import distinct_words, is_content_word

NEAREST = 20
MIN_OCCURRENCES = 5


@dataclass(frozen=True)
class Surroundings:
    """What a name may be when it is true to a text: a word of it, a form of one, or a near neighbour of one."""

    dimensions: frozenset[int]
    words: frozenset[str]
    stems: frozenset[str]
    near: frozenset[int]

    def has_word(self, word: NamedWord) -> bool:
        """Whether the word, or the piece of a word, is literally in the text."""
        return word.dimension in self.dimensions or base_name(word).casefold() in self.words

    def has_near(self, word: NamedWord) -> bool:
        """Whether the word is in the text, a form of a word in it, or near one."""
        return self.has_word(word) or word.dimension in self.near or stem(base_name(word)) in self.stems


def base_name(word: NamedWord) -> str:
    """The name without its sense. Example: `bank@sense1 -> bank`."""
    return re.sub(r"@sense\d+$", "", word.name)


def is_piece(word: NamedWord) -> bool:
    """Whether a name continues a word. Example: `##ing`."""
    return word.name.startswith(CONTINUATION) and len(word.name) > len(CONTINUATION)


def is_punctuation(word: NamedWord) -> bool:
    """Whether a name has neither letter nor digit."""
    return not any(character.isalnum() for character in word.name)


def surroundings_of(model: NamedModel, readings: Sequence[Reading], k: int = NEAREST) -> list[Surroundings]:
    """The surroundings of each text; neighbours are those of its content words."""
    words = [distinct_words(reading.text) for reading in readings]
    content = sorted({word for there in words for word in there if is_content_word(word)})
    dimensions = dict(zip(content, model.dimensions_of(content), strict=True))
    nearest = model.neighbours(sorted({i for ids in dimensions.values() for i in ids}), k)
    near = {word: frozenset().union(*(nearest.get(i, frozenset()) for i in ids)) for word, ids in dimensions.items()}
    return [
        Surroundings(
            reading.written,
            there,
            frozenset(stem(word) for word in there),
            frozenset().union(*(near[word] for word in there if word in near)),
        )
        for reading, there in zip(readings, words, strict=True)
    ]


def own_word_share(readings: Sequence[Reading], surroundings: Sequence[Surroundings]) -> Rate:
    """Share on words that are literally in the text."""
    pairs = zip(readings, surroundings, strict=True)
    return weighed([(abs(w.contribution), around.has_word(w)) for w in reading.words] for reading, around in pairs)


def lexical_neighbour_share(readings: Sequence[Reading], surroundings: Sequence[Surroundings]) -> Rate:
    """Share on words that are in the text, forms of its words, or near neighbours of them."""
    pairs = zip(readings, surroundings, strict=True)
    return weighed([(abs(w.contribution), around.has_near(w)) for w in reading.words] for reading, around in pairs)


def lexical_neighbour_chance(readings: Sequence[Reading], surroundings: Sequence[Surroundings], seed: int) -> Rate:
    """The same when each text shows as many words as it does, but drawn from what the other texts show."""
    shown = [word for reading in readings for word in reading.words]
    random, texts, start = np.random.default_rng(seed), [], 0
    for reading, around in zip(readings, surroundings, strict=True):
        count = len(reading.words)
        if len(shown) > count:
            drawn = random.integers(len(shown) - count, size=count)
            # Numbers from `start` on skip the text's own words.
            words = [shown[int(i) + count * int(i >= start)] for i in drawn]
            texts.append([(abs(word.contribution), around.has_near(word)) for word in words])
        start += count
    return weighed(texts)


def share_of(readings: Sequence[Reading], belongs: Callable[[NamedWord], bool]) -> Rate:
    """Share on words of some kind."""
    return weighed([(abs(word.contribution), belongs(word)) for word in reading.words] for reading in readings)


def function_word_share(readings: Sequence[Reading]) -> Rate:
    """Share on function words; negations are not counted among them."""
    return share_of(readings, lambda word: is_function_word(base_name(word)))


def sign_stability(readings: Sequence[Reading]) -> Rate:
    """Share on occurrences that contribute to or against a class as the same word mostly does.

    Of words that occur in at least five texts, and per class: with respect to the predicted class alone every word
    would change its sign with the prediction. Of two classes one mirrors the other, and both count alike.
    """
    occurrences: dict[int, list[tuple[float, ...]]] = defaultdict(list)
    for reading in readings:
        for word in reading.words:
            occurrences[word.dimension].append(word.contributions)
    agreeing = total = 0.0
    count = 0
    for rows in occurrences.values():
        if len(rows) < MIN_OCCURRENCES:
            continue
        values = np.array(rows)
        votes = np.sign(values).sum(0)
        majority = np.where(votes == 0, np.sign(values.sum(0)), np.sign(votes))
        agreeing += float(np.abs(values)[np.sign(values) == majority].sum())
        total += float(np.abs(values).sum())
        count += len(rows)
    return Rate(agreeing / total if total > 0 else None, count)
