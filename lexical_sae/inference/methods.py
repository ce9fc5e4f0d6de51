"""How what is explained is shared out among words: three methods, each exact about something else.

dla             what each word adds at this input; the bias left over depends on the input
path            the same averaged on the way from the empty text, so that the bias is that text's decision
leave_one_out   effect of removing each word alone; single removals need not add up, and the rest is reported
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lexical_sae.mechanistic.attribution import code_identity_error, code_identity_gap
from lexical_sae.mechanistic.exact import Head, Removal, along_path, attribute_only, towards
from lexical_sae.models.circuit_state import SparseCircuitState


@dataclass(frozen=True)
class Shares:
    """A decision in one direction, shared out."""

    contributions: Float[Tensor, " K"]
    """In the order of the code."""
    biases: Float[Tensor, " B"]
    identity_errors: Float[Tensor, " B"]


Direction = Float[Tensor, "B C"]
Method = Callable[[Head, SparseCircuitState, Direction, Removal | None], Shares]


def direct(head: Head, state: SparseCircuitState, direction: Direction, removal: Removal | None) -> Shares:
    """Direct logit attribution."""
    del head, removal
    return _read_off(state, direction)


def path(head: Head, state: SparseCircuitState, direction: Direction, removal: Removal | None) -> Shares:
    """Integrated gradients from the empty text, in closed form."""
    del removal
    return _read_off(along_path(head, state), direction)


def leave_one_out(head: Head, state: SparseCircuitState, direction: Direction, removal: Removal | None) -> Shares:
    """Effects of single removals; the identity error is that of the direct decomposition."""
    del head
    assert removal is not None
    effects = removal.effects.towards(direction)
    whole = (direction * state.logits).sum(-1)
    rest = whole - torch.zeros_like(whole).index_add_(0, state.code.rows, effects)
    return Shares(effects, rest, code_identity_error(towards(state, direction)))


def _read_off(state: SparseCircuitState, direction: Direction) -> Shares:
    directed = towards(state, direction)
    contributions = attribute_only(directed)
    return Shares(contributions, directed.b_eff[:, 0], code_identity_gap(directed, 0, contributions))


METHODS: dict[str, Method] = {"dla": direct, "leave_one_out": leave_one_out, "path": path}
