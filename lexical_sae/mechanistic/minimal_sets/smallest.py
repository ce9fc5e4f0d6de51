"""The smallest set of words that answers a question, with proof that no smaller one does.

1. Upper bound: choose greedily the word that brings the answer nearest, then give back what turns out superfluous.
2. Lower bound: for sizes 1, 2, 3, ... either find a set of just that size or exclude all of them. Sets grow word by
   word; one linear bound excludes every way to complete a set, or every way that begins with a given next word.
3. The two meet, or the budget ends and both are reported.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lexical_sae.mechanistic.minimal_sets.decision import Decision
from lexical_sae.mechanistic.minimal_sets.question import Question
from lexical_sae.mechanistic.minimal_sets.relaxation import bound_margins
from lexical_sae.mechanistic.minimal_sets.removals import certify_removals
from lexical_sae.utils.errors import SettingsError

BATCH = 1024
"""Sets handled at a time: their hidden units fit in the cache."""


@dataclass(frozen=True)
class SmallestSet:
    """The smallest set that was found, and the size below which there is provably none."""

    words: tuple[int, ...] | None
    """Words that answer the question; none if no set was found."""
    label: int | None
    """The class that wins with this choice of words."""
    at_least: int
    """No set of fewer words answers the question. More than all words together: no set does."""
    num_words: int
    """K, the active words of the text."""
    nodes: int
    """Sets that were bounded or evaluated on the way."""

    @property
    def is_minimal(self) -> bool:
        """Whether it is proved that no smaller set answers the question."""
        return self.words is not None and len(self.words) == self.at_least

    @property
    def is_impossible(self) -> bool:
        """Whether it is proved that no set answers the question."""
        return self.at_least > self.num_words


class OutOfBudgetError(Exception):
    """The search must stop; what was proved so far stands."""


class Budget:
    """How much a search may do, in sets and, if asked, in seconds."""

    def __init__(self, max_nodes: int, seconds: float | None) -> None:
        self.nodes = 0
        self._max_nodes = max_nodes
        self._deadline = torch.inf if seconds is None else time.monotonic() + seconds

    def spend(self, nodes: int) -> None:
        """Pay for some sets, or stop."""
        if self.nodes + nodes > self._max_nodes or time.monotonic() > self._deadline:
            raise OutOfBudgetError
        self.nodes += nodes


def find_smallest(question: Question, max_nodes: int, seconds: float | None) -> SmallestSet:
    """The smallest set that answers the question, or bounds on its size.

    `max_nodes` limits the search in the same way on every machine; `seconds`, if given, also by the clock.
    """
    num_words, budget = question.decision.num_words, Budget(max_nodes, seconds)
    best = choose_greedily(question)
    at_least, most = 0, num_words + 1 if best is None else int(best.sum())
    try:
        while at_least < most:
            found = _find_of_size(question, at_least, budget)
            if found is not None:
                best = found
                break
            at_least += 1
    except OutOfBudgetError:
        pass
    if best is None:
        return SmallestSet(None, None, at_least, num_words, budget.nodes)
    words = tuple(best.nonzero().flatten().tolist())
    label = int(question.decision.logits(question.kept(best)).argmax())
    return SmallestSet(words, label, at_least, num_words, budget.nodes)


class Partial(NamedTuple):
    """Sets on their way to the wanted size."""

    chosen: Bool[Tensor, "sets K"]
    free: Bool[Tensor, "sets K"]
    """Words that may still join."""
    rows: Int[Tensor, " sets"]
    missing: int
    """How many words must still join."""


def _find_of_size(question: Question, size: int, budget: Budget) -> Bool[Tensor, " K"] | None:
    """A set of exactly this size that answers the question; none if it is proved that there is none."""
    reach = Reach.of(question.moves, size)
    rows = question.first_rows()
    nothing = torch.zeros(len(rows), question.decision.num_words, dtype=torch.bool)
    stack = [Partial(nothing, ~nothing, rows, size)]
    while stack:
        partial = stack.pop()
        budget.spend(len(partial.rows))
        if partial.missing == 0:
            answers = question.is_answered_by(partial.chosen).nonzero().flatten()
            if len(answers):
                return partial.chosen[answers[0]]
        else:
            # The most promising batch comes last, so that it is taken first.
            stack += reversed(list(_grow(question, partial, reach)))
    return None


@dataclass(frozen=True)
class Reach:
    """How far words can move the hidden units."""

    moves: Float[Tensor, "K H"]
    most_fall: Float[Tensor, "sizes H"]
    """By number of words: how far that many words can lower a unit."""
    most_rise: Float[Tensor, "sizes H"]

    @classmethod
    def of(cls, moves: Float[Tensor, "K H"], size: int) -> "Reach":
        falls, rises = (-moves).clamp(min=0), moves.clamp(min=0)
        return cls(moves, *(part.topk(size, dim=0).values.cumsum(0) for part in (falls, rises)))

    def of_partial(self, partial: Partial) -> tuple[Float[Tensor, "sets H"], Float[Tensor, "sets H"]]:
        """Largest fall and rise of each unit: at most what all free words do, and what any set of that size does."""
        free, place = partial.free.double(), partial.missing - 1
        fall = (free @ (-self.moves).clamp(min=0)).minimum(self.most_fall[place])
        return fall, (free @ self.moves.clamp(min=0)).minimum(self.most_rise[place])


def _grow(question: Question, partial: Partial, reach: Reach) -> Iterator[Partial]:
    """The sets with one word more that can still be completed to an answer, in batches.

    Words are tried in the order of their effect on the bound, the most harmful first, and each child may go on only
    with later words. So the best completion of a child is the window of words that starts with its own.
    """
    hidden = question.hidden(partial.chosen)
    rows = question.rows_to_beat(hidden, partial.rows)
    bound = bound_margins(question.margins.select(rows), hidden, *reach.of_partial(partial), question.moves)
    effects, order = bound.effects.masked_fill(~partial.free, torch.inf).sort(dim=-1, stable=True)
    windows = effects.unfold(-1, partial.missing, 1).sum(-1)
    # Written so that a bound that is not a number excludes nothing.
    parents, places = (~(bound.constant[:, None] + windows > 0)).nonzero(as_tuple=True)
    ranks = order.argsort(-1)
    for parent, place in zip(parents.split(BATCH), places.split(BATCH), strict=True):
        is_next = ranks[parent] == place[:, None]
        later = partial.free[parent] & (ranks[parent] > place[:, None])
        yield Partial(partial.chosen[parent] | is_next, later, rows[parent], partial.missing - 1)


def choose_greedily(question: Question) -> Bool[Tensor, " K"] | None:
    """A set that answers the question and from which no word can be given back; none if greed finds none.

    One word after another is chosen, each time the one that brings the answer nearest.
    """
    chosen = torch.zeros(question.decision.num_words, dtype=torch.bool)
    while not question.is_answered_by(chosen):
        left = (~chosen).nonzero().flatten()
        if len(left) == 0:
            return None
        distances = question.distance(question.hidden(chosen) + question.moves[left])
        chosen[left[distances.argmin()]] = True
    for word in chosen.nonzero().flatten().tolist():
        chosen[word] = False
        chosen[word] = not question.is_answered_by(chosen)
    return chosen


def smallest_flip(
    decision: Decision, to: int | None = None, max_nodes: int = 50_000, seconds: float | None = None
) -> SmallestSet:
    """The fewest words whose removal makes another class win, or the class `to`.

    The search stops after `max_nodes` sets, the same on every machine, or after `seconds` if given; then the result
    holds the smallest set found and the size below which there is provably none. Before it, whole families of sets are
    looked at, at most `max_nodes` of them and never more than 4096; that look is not counted.
    """
    others = [label for label in range(decision.num_classes) if label != decision.winner]
    if to is not None and to not in others:
        raise SettingsError(f"to={to} is not a class that this decision could change to; choose one of {others}")
    # Whether removals can change anything at all is settled faster by halving than size by size.
    certificate = certify_removals(decision, range(decision.num_words), min(max_nodes, 4096))
    if all(certificate.lower[label] > 0 for label in (others if to is None else [to])):
        return SmallestSet(None, None, decision.num_words + 1, decision.num_words, certificate.nodes)
    question = Question.of_flips(decision) if to is None else Question.of_flips_to(decision, to)
    return find_smallest(question, max_nodes, seconds)


def smallest_sufficient_set(decision: Decision, max_nodes: int = 50_000, seconds: float | None = None) -> SmallestSet:
    """The fewest words that, with all others removed, give the same decision; none at all if the biases do.

    Some of the removed words may undo it when they come back.
    """
    return find_smallest(Question.of_sufficiency(decision), max_nodes, seconds)
