"""Explainers that are exact about something: what a word adds, what its removal does, what it adds along the path."""

import torch

from splade.evaluation.arena.case import Case, Scores
from splade.evaluation.arena.explainer import ByFunction
from splade.mechanistic.exact import along_path, attribute_towards, leave_one_out


@torch.no_grad()
def direct(case: Case, _seed: int) -> Scores:
    """Direct logit attribution."""
    return attribute_towards(case.state, case.direction)


def removal(case: Case, _seed: int) -> Scores:
    """The effect of removing each word alone."""
    return leave_one_out(case.head, case.state).effects.towards(case.direction)


@torch.no_grad()
def path(case: Case, _seed: int) -> Scores:
    """Integrated gradients from the empty text, in closed form."""
    return attribute_towards(along_path(case.head, case.state), case.direction)


DIRECT = ByFunction("direct", "direct attribution: what each word adds at this input", direct)
LEAVE_ONE_OUT = ByFunction("leave_one_out", "exact effect of removing each word alone", removal)
PATH = ByFunction("path", "integrated gradients from no words, in closed form", path)
