"""Minimal reasons for a decision: what it hangs on, what is enough for it, and what holds it whatever else happens."""

from dataclasses import dataclass

import torch

from splade.mechanistic.certify.decision import Decision
from splade.mechanistic.certify.question import Question
from splade.mechanistic.certify.removals import certify_removals
from splade.mechanistic.certify.smallest import SmallestSet, find_smallest


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
        raise ValueError(f"to={to} is not a class that this decision could change to; choose one of {others}")
    # Whether removals can change anything at all is settled faster by halving than size by size.
    certificate = certify_removals(decision, range(decision.num_words), min(max_nodes, 4096))
    if all(certificate.lower[label] > 0 for label in (others if to is None else [to])):
        return SmallestSet(None, None, decision.num_words + 1, decision.num_words, certificate.nodes)
    question = Question.of_flips(decision) if to is None else Question.of_flips_to(decision, to)
    return find_smallest(question, max_nodes, seconds)


def smallest_sufficient_set(decision: Decision, max_nodes: int = 50_000, seconds: float | None = None) -> SmallestSet:
    """The fewest words that, with all others removed, give the same decision; none at all if the biases do.

    Some of the removed words may undo it when they come back: `robust_reason` excludes that.
    """
    return find_smallest(Question.of_sufficiency(decision), max_nodes, seconds)


@dataclass(frozen=True)
class RobustReason:
    """Words that, kept, hold the decision whatever subset of the others is removed: an abductive explanation."""

    words: tuple[int, ...]
    is_proved: bool
    """False only where the decision itself is a tie within rounding."""
    undecided: tuple[int, ...]
    """Words that were kept because neither a proof nor a counterexample without them was found."""

    @property
    def is_subset_minimal(self) -> bool:
        """Whether every word is needed: without any one of them, some removal of others changes the decision."""
        return self.is_proved and not self.undecided


def robust_reason(decision: Decision, max_nodes: int = 1024) -> RobustReason:
    """A set of words that holds the decision whatever subset of the other words is removed.

    Beginning with all words, each in turn is let go if the decision is then still proved, the least supportive first.
    A word that a counterexample keeps is needed in every smaller set too, so if all are, no proper subset will do.
    `max_nodes` limits each of the K proofs.
    """
    if not certify_removals(decision, []).is_proved:
        everything = tuple(range(decision.num_words))
        return RobustReason(everything, False, everything)
    free: list[int] = []
    undecided: list[int] = []
    for word in _least_supportive_first(decision):
        certificate = certify_removals(decision, [*free, word], max_nodes)
        if certificate.is_proved:
            free.append(word)
        elif certificate.counterexample is None:
            undecided.append(word)
    kept = tuple(word for word in range(decision.num_words) if word not in free)
    return RobustReason(kept, True, tuple(sorted(undecided)))


def _least_supportive_first(decision: Decision) -> list[int]:
    """Words by what is left of the smallest margin when they alone are removed, the largest first."""
    question = Question.of_flips(decision)
    alone = torch.eye(decision.num_words, dtype=torch.bool)
    return question.distance(question.hidden(alone)).argsort(descending=True, stable=True).tolist()
