"""A set that answers a question, found greedily: quick, often the smallest, and its absence proves nothing."""

import torch
from jaxtyping import Bool
from torch import Tensor

from splade.mechanistic.certify.question import Question


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
