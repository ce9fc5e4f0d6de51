"""The smallest set of words whose removal brings the gap between groups under a bound, at a bounded loss of accuracy.

1. If the gap of rates is under the bound, or one of the gaps is such as one time in a hundred is seen without any bias,
   no word is removed.
2. Sets of one and of two candidates are all tried; the best of the smallest size that does it is taken.
3. Otherwise words are added one by one, and at the end those that turned out not to be needed are given back. No word
   of the result can be given back, but a smaller set of other words may exist.

Two gaps are to be closed: that of false positive rates, and that of mean *scores* on the same texts. Where several
words say the same, taking one of them away changes no label, and rates alone would show no way down; and rates may come
to agree by luck where scores still differ. A gap counts as closed when it is under the bound, or no greater than is
seen half of the time without bias: on few texts even a fair classifier has a gap. What is chosen here is chosen on
these texts: report on others.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from numpy import ndarray

from splade.fairness import Decisions, Group, worst_fpr_gap
from splade.progress import OnStep, Step, silent
from splade.surgery.auditing import decisions_on, large_enough
from splade.surgery.codes import Answers, Codes, Decide
from splade.surgery.edits import ZeroWords

EXHAUSTIVE_SIZE = 2
"""Sets up to this size are all tried."""
SHUFFLES = 400
"""Deals of the answers that tell what is chance."""


@dataclass(frozen=True)
class Bounds:
    """What a set of words must reach."""

    epsilon: float = 0.05
    """Greatest gap of false positive rates that is left alone."""
    delta: float = 0.01
    """Greatest loss of accuracy."""
    most_words: int = 20


@dataclass(frozen=True)
class GroupTexts:
    """Texts with their words, their truth and their groups."""

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
    """The gap that is seen half of the time if the same answers fall on groups at random."""
    rare: float
    """The gap that is then seen one time in a hundred."""
    score_gap: float
    """The worst difference of mean scores between a group and its background, over texts without a positive label."""
    score_chance: float
    """The difference that is seen half of the time if the same scores fall on groups at random."""
    score_rare: float
    """The difference that is then seen one time in a hundred."""


@dataclass(frozen=True)
class Choice:
    """The words that were chosen, and how far that went on the texts they were chosen on."""

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
    """The words to remove, out of candidates; none if there is nothing to mend.

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
    return Choice(found.words, "reached; no word of the set can be given back", True, False, before, found)


def tuned_threshold(texts: GroupTexts, answers: Answers, bounds: Bounds = Bounds()) -> float:
    """The threshold on the score with the smallest gap at the allowed loss of accuracy; of equals the most accurate.

    The yardstick for removals: one number for all groups, chosen on the same texts.
    """
    usable = large_enough(decisions_on(answers, texts.truth), texts.groups)
    floor = float((answers.said == texts.truth).mean()) - bounds.delta
    options = []
    for threshold in np.unique(np.quantile(answers.score, np.linspace(0, 1, 201))):
        said = answers.score >= threshold
        accuracy = float((said == texts.truth).mean())
        if accuracy >= floor:
            gap = _gap(Decisions(texts.truth, said, answers.score), usable)
            # Below the bound, a smaller gap buys nothing.
            options.append((max(gap, bounds.epsilon), -accuracy, float(threshold)))
    return min(options)[2] if options else 0.5


def gaps_by_chance(
    values: Shaped[ndarray, " N"],
    truth: Bool[ndarray, " N"],
    groups: Sequence[Group],
    rounds: int = SHUFFLES,
    seed: int = 0,
) -> Float[ndarray, " R"]:
    """Worst gaps when answers, or scores, on texts without a positive label are dealt to those texts at random."""
    harmless = np.flatnonzero(~truth)
    return _worst_gaps(values[harmless][_orders(len(harmless), rounds, seed)], harmless, groups)


def _worst_gaps(
    values: Shaped[ndarray, "R M"], rows: Int[ndarray, " M"], groups: Sequence[Group]
) -> Float[ndarray, " R"]:
    """Greatest distance of a group's mean from that of its background, over columns that stand for these rows."""
    sides = ((values[:, group.member[rows]], values[:, group.background[rows]]) for group in groups)
    return np.stack([np.abs(own.mean(1) - other.mean(1)) for own, other in sides]).max(0)


@lru_cache(maxsize=2)
def _orders(count: int, rounds: int, seed: int) -> Int[ndarray, "R M"]:
    """Random orders of so many texts; the same for every set that is tried, so that sets are compared alike."""
    return np.random.default_rng(seed).permuted(np.tile(np.arange(count), (rounds, 1)), axis=1)


class _Left(NamedTuple):
    """How far both gaps are from closed; that of scores counts first."""

    of_scores: float
    of_rates: float


class _Search:
    """Tries sets of words, each once."""

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
            raise ValueError("every group is too small on the texts to choose on; give more texts or other groups")
        gap, accuracy = _gap(decisions, usable), float((decisions.said == decisions.truth).mean())
        chance, rare = np.quantile(gaps_by_chance(decisions.said, decisions.truth, usable), [0.5, 0.99])
        score_chances = np.quantile(gaps_by_chance(decisions.score, decisions.truth, usable), [0.5, 0.99])
        score_gap = _score_gap(decisions, usable)
        return Outcome(words, gap, accuracy, float(chance), float(rare), score_gap, *map(float, score_chances))

    def is_mended(self, outcome: Outcome) -> bool:
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
        return self.is_mended(outcome) and self.is_affordable(outcome)

    def greedy(self, candidates: Sequence[int]) -> Outcome:
        """Add what closes the gap of scores most and, where that is closed, that of rates, until nothing helps further.

        If both are never closed, the affordable set on the way with the smallest gap of rates. A set on the way may
        cost more than is allowed: what one word's removal loses, the next may win back.
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
        """Give back words without which it is still enough."""
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
