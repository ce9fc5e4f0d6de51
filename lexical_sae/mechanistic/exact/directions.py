"""The question about a decision: a direction over the classes, one number per class and text.

Every method is linear in the class logits, so one direction serves all of them: `towards(state, direction)` for what
is read off a state (direct and path attribution), `ClassEffects.towards(direction)` for what removal does.
"""

from dataclasses import replace
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from lexical_sae.mechanistic.attribution import attribute_code
from lexical_sae.models.circuit_state import CircuitState, SparseCircuitState
from lexical_sae.utils.precision import full_precision

State = TypeVar("State", CircuitState, SparseCircuitState)


def for_class(logits: Float[Tensor, "*batch C"], classes: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch C"]:
    """The direction "how much for this class": its raw logit. Example: class 1 of 3 -> [0, 1, 0]"""
    return one_hot(classes, logits.shape[-1]).to(logits.dtype)


def class_centered(logits: Float[Tensor, "*batch C"], classes: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch C"]:
    """The direction "how much for this class, against the mean of all". Example: class 1 of 4 -> [-1, 3, -1, -1] / 4

    What moves every logit alike changes no probability and counts as nothing here.
    """
    return for_class(logits, classes) - 1 / logits.shape[-1]


def contrast(
    logits: Float[Tensor, "*batch C"], classes: Int[Tensor, "*batch"], others: Int[Tensor, "*batch"]
) -> Float[Tensor, "*batch C"]:
    """The direction "why this class and not that one". Example: class 1 rather than 2, of 3 -> [0, 1, -1]"""
    return for_class(logits, classes) - for_class(logits, others)


@full_precision()
def towards(state: State, direction: Float[Tensor, "*batch C"]) -> State:
    """The same decisions with one output instead of C: how far the logits point in the direction.

    A state like any other, exact in the same sense, so whatever reads a state answers the question asked.

    Example: `identity_error(towards(state, contrast(state.logits, a, b)))`
    """
    return replace(
        state,
        logits=(direction * state.logits).sum(-1, keepdim=True),
        readout=direction[..., None, :] @ state.readout,
        b_eff=(direction * state.b_eff).sum(-1, keepdim=True),
    )


def attribute_towards(state: SparseCircuitState, direction: Float[Tensor, "B C"]) -> Float[Tensor, " K"]:
    """Contribution of every active word in a direction, in the order of the code.

    Direct attribution for the state that a head gives, path attribution for `along_path(head, state)`.
    """
    return attribute_only(towards(state, direction))


def attribute_only(state: SparseCircuitState) -> Float[Tensor, " K"]:
    """Contribution of every active word to the only output of what `towards` gave."""
    only_output = torch.zeros(len(state.logits), dtype=torch.long, device=state.logits.device)
    return attribute_code(state, only_output, centered=False)
