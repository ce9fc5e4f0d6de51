"""The smallest set of words whose removal brings the gap between groups under a bound, at a bounded loss of accuracy.

1. If the gap of rates is under the bound, or either gap is within the 99th percentile of a permutation test, no word is
   removed.
2. All sets of one and of two candidates are tried; the best of the smallest size that closes the gap is taken.
3. Otherwise words are added one by one, and unneeded ones are pruned at the end. Every word of the result is needed,
   but a smaller set of other words may exist.

Two gaps must close: that of false positive rates, and that of mean *scores* on the same texts. Where several words
carry the same evidence, removing one of them changes no label, so rates alone would give no direction; and rates may
agree by luck where scores differ. A gap counts as closed if it is under the bound or below the median of the
permutation test: on few texts even a fair classifier has a gap. Results must be reported on other texts.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from numpy import ndarray

from lexical_sae.intervene.concepts.bias_audit import decisions_on, large_enough
from lexical_sae.intervene.concepts.fairness import Decisions, Group, worst_fpr_gap
from lexical_sae.intervene.concepts.removals import ZeroWords
from lexical_sae.intervene.concepts.word_matrix import Codes, Decide, Predictions
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.progress import OnStep, Step, silent

EXHAUSTIVE_SIZE = 2
"""Sets up to this size are all tried."""
SHUFFLES = 400
"""Permutations of the predictions behind the chance level."""


@dataclass(frozen=True)
class Bounds:
    """What a set of words must reach."""

    epsilon: float = 0.05
    """Tolerated false-positive-rate gap."""
    delta: float = 0.01
    """Maximum loss of accuracy."""
    most_words: int = 20


@dataclass(frozen=True)
class GroupTexts:
    """Texts with their activations, true labels and groups."""

    codes: Codes
    truth: Bool[ndarray, " N"]
    groups: tuple[Group, ...]


@dataclass(frozen=True)
class Outcome:
    """Gap and accuracy after removing some words."""

    words: tuple[int, ...]
    gap: float
    accuracy: float
    chance: float
    """Median gap when the same predictions are permuted over groups."""
    rare: float
    """99th percentile of that gap."""
    score_gap: float
    """The worst difference of mean scores between a group and its background, over texts without a positive label."""
    score_chance: float
    """Median difference when the same scores are permuted over groups."""
    score_rare: float
    """99th percentile of that difference."""


@dataclass(frozen=True)
class Choice:
    """The chosen words, and their effect on the texts they were chosen on."""

    words: tuple[int, ...]
    verdict: str
    """In words: whether the bound was reached, and whether the set is known to be the smallest."""
    is_reached: bool
    is_smallest: bool
    before: Outcome
    after: Outcome


def choose_words(
    texts: GroupTexts, decide: Decide, candidates: Sequence[int], bounds: Bounds = Bounds(), on_step: OnStep = silent
) -> Choice:
    """The words to remove; none if there is no gap to close.

    Args:
        texts: Texts to choose on.
        decide: Predictions from activations.
        candidates: Dimensions to choose among.
        bounds: What to reach.
        on_step: Receives progress.

    Returns:
        The words, with gaps and accuracy before and after.

    Example: `choose_words(validation, decider(model, [1]), [w.dimension for w in suspects]).words`
    """
    search = _Search(texts, decide, bounds, on_step)
    before = search.try_set(())
    if before.gap <= max(bounds.epsilon, before.rare) or before.score_gap <= before.score_rare:
        return Choice((), "no gap over the bound and beyond chance: nothing to remove", True, True, before, before)
    for size in range(1, EXHAUSTIVE_SIZE + 1):
        tried = [search.try_set(some) for some in combinations(candidates, size)] if size <= bounds.most_words else []
        good = [outcome for outcome in tried if search.is_good(outcome)]
        if good:
            best = min(good, key=lambda outcome: (outcome.gap, -outcome.accuracy))
            return Choice(best.words, "reached, with the fewest of the candidates", True, True, before, best)
    found = search.greedy(candidates)
    if not search.is_good(found):
        found = search.pruned(found, lambda o: search.is_affordable(o) and o.gap <= found.gap)
        return Choice(found.words, "not reached within the bounds: the best set found", False, False, before, found)
    found = search.pruned(found, search.is_good)
    return Choice(found.words, "reached; every word of the set is needed", True, False, before, found)


def tuned_threshold(texts: GroupTexts, predictions: Predictions, bounds: Bounds = Bounds()) -> float:
    """The threshold on the score with the smallest gap at the allowed loss of accuracy; of equals the most accurate.

    The baseline for removals: one number for all groups, chosen on the same texts.
    """
    usable = large_enough(decisions_on(predictions, texts.truth), texts.groups)
    floor = float((predictions.flagged == texts.truth).mean()) - bounds.delta
    options = []
    for threshold in np.unique(np.quantile(predictions.score, np.linspace(0, 1, 201))):
        flagged = predictions.score >= threshold
        accuracy = float((flagged == texts.truth).mean())
        if accuracy >= floor:
            gap = _gap(Decisions(texts.truth, flagged, predictions.score), usable)
            # Below the bound, a smaller gap gains nothing.
            options.append((max(gap, bounds.epsilon), -accuracy, float(threshold)))
    return min(options)[2] if options else 0.5


def gaps_by_chance(
    values: Shaped[ndarray, " N"],
    truth: Bool[ndarray, " N"],
    groups: Sequence[Group],
    rounds: int = SHUFFLES,
    seed: int = 0,
) -> Float[ndarray, " R"]:
    """Worst gaps when predictions, or scores, are permuted among the texts without a positive label."""
    harmless = np.flatnonzero(~truth)
    return _worst_gaps(values[harmless][_orders(len(harmless), rounds, seed)], harmless, groups)


def _worst_gaps(
    values: Shaped[ndarray, "R M"], rows: Int[ndarray, " M"], groups: Sequence[Group]
) -> Float[ndarray, " R"]:
    """Largest difference between a group's mean and its background's; column i belongs to text `rows[i]`."""
    sides = ((values[:, group.member[rows]], values[:, group.background[rows]]) for group in groups)
    return np.stack([np.abs(own.mean(1) - other.mean(1)) for own, other in sides]).max(0)


@lru_cache(maxsize=2)
def _orders(count: int, rounds: int, seed: int) -> Int[ndarray, "R M"]:
    """Random orders of `count` texts; the same for every set of words, so that sets are comparable."""
    return np.random.default_rng(seed).permuted(np.tile(np.arange(count), (rounds, 1)), axis=1)


class _Left(NamedTuple):
    """The remaining gaps; that of scores counts first."""

    of_scores: float
    of_rates: float


class _Search:
    """Evaluates sets of words, each once."""

    def __init__(self, texts: GroupTexts, decide: Decide, bounds: Bounds, on_step: OnStep) -> None:
        self.texts, self.decide, self.bounds, self.on_step = texts, decide, bounds, on_step
        self.known: dict[frozenset[int], Outcome] = {}

    def try_set(self, words: Sequence[int]) -> Outcome:
        key = frozenset(words)
        if key not in self.known:
            self.known[key] = self._outcome(tuple(words))
            self.on_step(Step("trying word sets", len(self.known), len(self.known)))
        return self.known[key]

    def _outcome(self, words: tuple[int, ...]) -> Outcome:
        decisions = decisions_on(self.decide(ZeroWords.of(words)(self.texts.codes)), self.texts.truth)
        usable = large_enough(decisions, self.texts.groups)
        if not usable:
            raise SettingsError("every group is too small on the texts to choose on; give more texts or other groups")
        gap, accuracy = _gap(decisions, usable), float((decisions.flagged == decisions.truth).mean())
        chance, rare = np.quantile(gaps_by_chance(decisions.flagged, decisions.truth, usable), [0.5, 0.99])
        score_chances = np.quantile(gaps_by_chance(decisions.score, decisions.truth, usable), [0.5, 0.99])
        score_gap = _score_gap(decisions, usable)
        return Outcome(words, gap, accuracy, float(chance), float(rare), score_gap, *map(float, score_chances))

    def is_closed(self, outcome: Outcome) -> bool:
        left = self._left(outcome)
        return left.of_scores == 0 and left.of_rates == 0

    def _left(self, outcome: Outcome) -> "_Left":
        return _Left(
            max(0.0, outcome.score_gap - max(self.bounds.epsilon, outcome.score_chance)),
            max(0.0, outcome.gap - max(self.bounds.epsilon, outcome.chance)),
        )

    def is_affordable(self, outcome: Outcome) -> bool:
        return outcome.accuracy >= self.try_set(()).accuracy - self.bounds.delta - 1e-12

    def is_good(self, outcome: Outcome) -> bool:
        return self.is_closed(outcome) and self.is_affordable(outcome)

    def greedy(self, candidates: Sequence[int]) -> Outcome:
        """Add the word that closes the gap of scores most, then that of rates, until nothing helps further.

        If they never close, the affordable set with the smallest gap of rates. A set on the way may cost more than
        allowed: the next word may win back what the last one lost.
        """
        at = best = self.try_set(())
        while not self.is_good(at) and len(at.words) < self.bounds.most_words:
            options = [self.try_set((*at.words, i)) for i in candidates if i not in at.words]
            nearest = min(options, key=self._left, default=at)
            if self._left(nearest) >= self._left(at):
                break
            at = nearest
            if self.is_affordable(at) and at.gap < best.gap:
                best = at
        return at if self.is_good(at) else best

    def pruned(self, outcome: Outcome, is_enough: Callable[[Outcome], bool]) -> Outcome:
        """Without the words that are not needed."""
        while smaller := next((o for o in self._with_one_less(outcome) if is_enough(o)), None):
            outcome = smaller
        return outcome

    def _with_one_less(self, outcome: Outcome) -> Iterator[Outcome]:
        return (self.try_set(tuple(w for w in outcome.words if w != gone)) for gone in outcome.words)


def _score_gap(decisions: Decisions, groups: Sequence[Group]) -> float:
    harmless = np.flatnonzero(~decisions.truth)
    return float(_worst_gaps(decisions.score[None, harmless], harmless, groups)[0])


def _gap(decisions: Decisions, groups: Sequence[Group]) -> float:
    return float(worst_fpr_gap(decisions, groups, np.ones((1, len(decisions.truth))))[0])
