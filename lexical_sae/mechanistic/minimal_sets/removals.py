"""Can any combination of these words change this decision? Proved, refuted by an example, or left open."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lexical_sae.mechanistic.minimal_sets.decision import Decision
from lexical_sae.mechanistic.minimal_sets.question import Question
from lexical_sae.mechanistic.minimal_sets.relaxation import LinearBound, bound_margins

EXHAUSTIVE_WORDS = 12
"""Up to this many words, every combination is evaluated."""
BATCH = 1024
"""Families of sets bounded at a time: their hidden units fit in the cache."""


@dataclass(frozen=True)
class RemovalCertificate:
    """Bounds on every margin of the decided class over another, over all subsets of some words being removed."""

    words: tuple[int, ...]
    winner: int
    """The class decided on with all words there."""
    lower: tuple[float, ...]
    """By class: the margin over it is never below this. Zero for the winner itself."""
    upper: tuple[float, ...]
    """By class: the margin over it is never above this."""
    method: Literal["exhaustive", "relaxation"]
    """Whether every subset was evaluated, or families of subsets bounded by linear relaxation."""
    counterexample: tuple[int, ...] | None
    """Words among these whose removal changes the decision, if such a set was met."""
    nodes: int
    """Subsets evaluated, or families of subsets bounded."""

    @property
    def is_proved(self) -> bool:
        """Whether no combination of these words changes the decision."""
        return all(low > 0 for label, low in enumerate(self.lower) if label != self.winner)


def certify_removals(decision: Decision, words: Iterable[int], max_nodes: int = 4096) -> RemovalCertificate:
    """What removing any subset of `words` can do to every margin of the decision.

    All subsets are evaluated if there are at most 12 words. Otherwise families of subsets are bounded, and those for
    which the bound does not exclude a change are split in two by one word after another, until all are excluded
    (proved), a subset that changes the decision turns up (refuted), or `max_nodes` families have been bounded (left
    open). The bounds hold in each case, but after a counterexample no effort goes into making them tight.
    """
    question, listed = Question.of_flips(decision), decision.checked_words(words)
    if len(listed) <= EXHAUSTIVE_WORDS:
        return _evaluate_all(question, listed)
    return _split_families(question, listed, max_nodes)


def subsets(words: list[int], num_words: int) -> Bool[Tensor, "sets K"]:
    """Every subset of the words, the empty one first."""
    numbers = torch.arange(2 ** len(words))[:, None]
    chosen = torch.zeros(len(numbers), num_words, dtype=torch.bool)
    chosen[:, words] = (numbers >> torch.arange(len(words))) & 1 > 0
    return chosen


def _evaluate_all(question: Question, words: list[int]) -> RemovalCertificate:
    removed = subsets(words, question.decision.num_words)
    margins = question.row_margins(question.hidden(removed))
    rounding = question.margins.rounding
    bounds = margins.amin(0) - rounding, margins.amax(0) + rounding
    example = _first_flip(question, removed)
    return _certificate(question, words, bounds, "exhaustive", example, len(removed))


class _Families(NamedTuple):
    """Sets of removed words that have been fixed so far; the words from place `level` of the order on are free."""

    removed: Bool[Tensor, "sets K"]
    rows: Int[Tensor, " sets"]
    lower: Float[Tensor, " sets"]
    """What is known of the margin from the family this one was split from."""
    level: int


def _split_families(question: Question, words: list[int], max_nodes: int) -> RemovalCertificate:
    rows, order = question.first_rows(), _most_influential_first(question, words)
    nothing = torch.zeros(len(rows), question.decision.num_words, dtype=torch.bool)
    root = _Families(nothing, rows, torch.full(rows.shape, -torch.inf, dtype=torch.float64), 0)
    # Mirrored, lines below become lines above.
    upper = -_least(_bound(question, root, words, is_mirrored=True))
    lower = torch.full_like(upper, torch.inf)
    queue, nodes, example = deque([root]), 0, None
    while queue and example is None and (nodes == 0 or nodes + len(queue[0].rows) <= max_nodes):
        families = queue.popleft()
        nodes += len(families.rows)
        free = order[families.level :]
        bound = _bound(question, families, free)
        low = _least(bound).maximum(families.lower)
        # Written so that a bound that is not a number excludes nothing.
        is_open = ~(low > 0)
        worst = families.removed.clone()
        worst[:, free] = bound.effects < 0
        example = _first_flip(question, worst[is_open])
        is_left = is_open if free else torch.zeros_like(is_open)
        lower.scatter_reduce_(0, families.rows[~is_left], low[~is_left], "amin")
        left = _Families(families.removed[is_left], families.rows[is_left], low[is_left], families.level)
        queue += _split(left, order)
    for families in queue:
        lower.scatter_reduce_(0, families.rows, families.lower, "amin")
    return _certificate(question, words, (lower, upper), "relaxation", example, nodes)


def _first_flip(question: Question, removed: Bool[Tensor, "sets K"]) -> tuple[int, ...] | None:
    """The first of the sets that changes the decision."""
    flips = question.is_answered_by(removed).nonzero().flatten()
    return tuple(removed[flips[0]].nonzero().flatten().tolist()) if len(flips) else None


def _most_influential_first(question: Question, words: list[int]) -> list[int]:
    """Words by how much they move the units that removals can switch: there the relaxation loses most."""
    moves, hidden = question.moves[words], question.hidden(torch.zeros(len(question.moves), dtype=torch.bool))
    can_switch = (hidden + moves.clamp(max=0).sum(0) < 0) & (hidden + moves.clamp(min=0).sum(0) > 0)
    influence = (moves.abs() * can_switch) @ question.margins.weights.abs().amax(0)
    return [words[place] for place in influence.argsort(descending=True, stable=True).tolist()]


def _bound(question: Question, families: _Families, free: list[int], *, is_mirrored: bool = False) -> LinearBound:
    moves = question.moves[free]
    margins = question.margins.select(families.rows)
    fall, rise = -moves.clamp(max=0).sum(0, keepdim=True), moves.clamp(min=0).sum(0, keepdim=True)
    hidden = question.hidden(families.removed)
    return bound_margins(margins.mirrored() if is_mirrored else margins, hidden, fall, rise, moves)


def _least(bound: LinearBound) -> Float[Tensor, " sets"]:
    """The minimum of a linear bound over all subsets of its words."""
    return bound.constant + bound.effects.clamp(max=0).sum(-1)


def _split(families: _Families, order: list[int]) -> list[_Families]:
    """Each family as two, without and with the next word removed, in batches."""
    if len(families.rows) == 0:
        return []
    without, along = families.removed, families.removed.clone()
    along[:, order[families.level]] = True
    removed, rows, lower = torch.cat([without, along]), families.rows.repeat(2), families.lower.repeat(2)
    pieces = zip(removed.split(BATCH), rows.split(BATCH), lower.split(BATCH), strict=True)
    return [_Families(*piece, families.level + 1) for piece in pieces]


def _certificate(
    question: Question,
    words: list[int],
    bounds: tuple[Float[Tensor, " rows"], Float[Tensor, " rows"]],
    method: Literal["exhaustive", "relaxation"],
    example: tuple[int, ...] | None,
    nodes: int,
) -> RemovalCertificate:
    none = torch.zeros(question.decision.num_classes, dtype=torch.float64)
    lower, upper = (tuple(none.index_copy(0, question.attackers, bound).tolist()) for bound in bounds)
    return RemovalCertificate(tuple(words), question.decision.winner, lower, upper, method, example, nodes)
