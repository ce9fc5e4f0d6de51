"""Tests that need a task of sentiment: minimal pairs, antonyms and negation, in sentences written for them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from lexical_sae.evaluation.bootstrap import BootstrapMeans
from lexical_sae.evaluation.context.model import ContextModel
from lexical_sae.evaluation.context.templates import (
    NEGATION_FRAMES,
    NEGATIVE,
    PLAIN_FRAME,
    POSITIVE,
    antonym_sentences,
    minimal_pairs,
    negated,
)
from lexical_sae.evaluation.context.words import WordActivity, words_of
from lexical_sae.evaluation.intervals import Interval
from lexical_sae.utils.progress import OnStep, silent

Predict = Callable[[Sequence[str]], Sequence[int]]
"""The label of each text, by a classifier to compare with."""


@dataclass(frozen=True)
class PairScores:
    """A noun beside opposite adjectives: what changes at the noun."""

    pairs: int
    features_change: Interval
    """Share of pairs in which the noun activates other features."""
    features_beside_positive: Interval
    """Features active at the noun beside the positive adjective."""
    features_beside_negative: Interval
    contribution_change: Interval
    """|change| in the noun's contribution / |change| in the adjective's, sums over pairs."""


def measure_minimal_pairs(model: ContextModel, positive: int, seed: int = 0, on_step: OnStep = silent) -> PairScores:
    """Resampled by noun: its pairs are not independent."""
    pairs = minimal_pairs()
    sentences = [sentence for pair in pairs for sentence in pair.sentences]
    words = [words_of(reading, 2) for reading in model.contributions(sentences, on_step)]
    nouns = list(dict.fromkeys(pair.noun for pair in pairs))
    figures = []
    for i, pair in enumerate(pairs):
        sides = words[2 * i], words[2 * i + 1]
        features = [{f.dimension for f in _at(side, pair.noun).features} for side in sides]
        at_noun, at_adjective = (
            [_at(side, word).contributions[positive] for side, word in zip(sides, those, strict=True)]
            for those in ((pair.noun, pair.noun), pair.adjectives)
        )
        sizes = (float(abs(one - other)) for one, other in (at_noun, at_adjective))
        figures.append((float(features[0] != features[1]), *(float(len(one)) for one in features), *sizes))
    rows = [nouns.index(pair.noun) for pair in pairs]
    means = _means(rows, ("changed", "positive", "negative", "noun", "adjective"), figures, seed)
    return PairScores(
        pairs=len(pairs),
        features_change=means.share("changed"),
        features_beside_positive=means["positive"],
        features_beside_negative=means["negative"],
        contribution_change=means.ratio("noun", "adjective"),
    )


@dataclass(frozen=True)
class AntonymScores:
    """A word swapped for its antonym in the same sentence."""

    sentences: int
    reversed: Interval
    """Share in which the contribution at the position changes its sign."""


def measure_antonyms(model: ContextModel, positive: int, seed: int = 0, on_step: OnStep = silent) -> AntonymScores:
    """Resampled by pair of antonyms."""
    swaps = antonym_sentences()
    words = [
        words_of(reading, 2)
        for reading in model.contributions([sentence for _, both in swaps for sentence in both], on_step)
    ]
    figures = []
    for i, (pair, _) in enumerate(swaps):
        one, other = (_at(words[2 * i + j], word).contributions[positive] for j, word in enumerate(pair))
        figures.append((float(one * other < 0),))
    pairs = list(dict.fromkeys(pair for pair, _ in swaps))
    means = _means([pairs.index(pair) for pair, _ in swaps], ("reversed",), figures, seed)
    return AntonymScores(len(swaps), means.share("reversed"))


@dataclass(frozen=True)
class NegationScores:
    """Share of sentences that are labelled as people read them."""

    sentences: int
    negated_positive: Interval
    """ "not good": negative."""
    negated_negative: Interval
    """ "not bad": positive."""
    plain_positive: Interval
    """The same words without negation, as the control."""
    plain_negative: Interval
    dense_positive: Interval | None
    """Negated, by the dense baseline; None where it was not given."""
    dense_negative: Interval | None


def measure_negation(
    model: ContextModel, positive: int, predict: Predict | None = None, seed: int = 0, on_step: OnStep = silent
) -> NegationScores:
    """Resampled by word."""

    def own(texts: Sequence[str]) -> Sequence[int]:
        return [reading.label for reading in model.contributions(texts, on_step)]

    def rate(words: Sequence[str], label: int, by: Predict) -> Interval:
        rows = [i for i in range(len(words)) for _ in NEGATION_FRAMES]
        right = [(float(found == label),) for found in by(negated(words))]
        return _means(rows, ("right",), right, seed).share("right")

    def plain(words: Sequence[str], label: int) -> Interval:
        right = [(float(found == label),) for found in own([PLAIN_FRAME.format(x=word) for word in words])]
        return _means(range(len(words)), ("right",), right, seed).share("right")

    negative = 1 - positive
    return NegationScores(
        sentences=len(negated(POSITIVE)) + len(negated(NEGATIVE)),
        negated_positive=rate(POSITIVE, negative, own),
        negated_negative=rate(NEGATIVE, positive, own),
        plain_positive=plain(POSITIVE, positive),
        plain_negative=plain(NEGATIVE, negative),
        dense_positive=rate(POSITIVE, negative, predict) if predict else None,
        dense_negative=rate(NEGATIVE, positive, predict) if predict else None,
    )


def _at(words: dict[str, WordActivity], word: str) -> WordActivity:
    """What a word of the sentence activates; nothing where the model reads less of the sentence."""
    return words.get(word, WordActivity((), np.zeros(2)))


def _means(rows: Sequence[int], names: Sequence[str], figures: Sequence[Sequence[float]], seed: int) -> BootstrapMeans:
    means = BootstrapMeans(seed=seed)
    columns = torch.tensor(figures, dtype=torch.float64).reshape(len(rows), len(names)).unbind(1)
    means.update(rows, dict(zip(names, columns, strict=True)))
    return means
