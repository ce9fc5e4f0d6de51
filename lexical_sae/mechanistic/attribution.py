"""Direct logit attribution: the one function that losses, metrics, circuits and reports call.

It is exact *at this input*, under autocast too. It is not the effect of removing a word, which may switch hidden units.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lexical_sae.models.circuit_state import CircuitState, SparseCircuitState
from lexical_sae.utils.precision import full_precision


@full_precision()
def compute_attribution_tensor(
    sparse_vector: Float[Tensor, "*batch V"],
    W_eff: Float[Tensor, "*batch C V"],
    class_indices: Int[Tensor, "*batch"],
) -> Float[Tensor, "*batch V"]:
    """Direct logit attribution of one class: `attr[j] = s[j] * W_eff[c, j]`.

    Exact: `attr.sum(-1) + b_eff[c] == logits[c]` up to rounding, for any head of the form `W(s) @ s + b(s)`.

    Args:
        sparse_vector: Activations of the words, s.
        W_eff: Effective weights of every class at this input.
        class_indices: The class to attribute, per decision.

    Returns:
        The contribution of every word to the logit of that class.

    Example: s=[2, 0], W_eff[c]=[3, 5] -> [6, 0]
    """
    W_class = W_eff.take_along_dim(class_indices[..., None, None], dim=-2).squeeze(-2)
    return sparse_vector * W_class


def attribute(state: CircuitState, class_indices: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch V"]:
    """`compute_attribution_tensor` of a state, without making the rows of the other classes."""
    only_row = state.effective_rows(class_indices)[..., None, :]
    return compute_attribution_tensor(state.sparse_vector, only_row, torch.zeros_like(class_indices))


@full_precision()
def attribute_centered(state: CircuitState, class_indices: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch V"]:
    """Class-centred contributions: the attribution of a class minus the mean over all classes.

    Adding one vector to every class's weights changes all raw attributions and no probability. The centred ones do
    not move, so "how much does this word contribute to the class" has one answer. With two classes it is half the
    difference.
    """
    centered = state.readout - state.readout.mean(-2, keepdim=True)
    row = centered.take_along_dim(class_indices[..., None, None], dim=-2) @ state.word_vectors.T
    return compute_attribution_tensor(state.sparse_vector, row, torch.zeros_like(class_indices))


@full_precision()
def attribute_code(
    state: SparseCircuitState, class_indices: Int[Tensor, " B"], *, centered: bool
) -> Float[Tensor, " K"]:
    """Contribution of every active word of a batch, in the order of the code; class-centred if asked."""
    readout = state.readout - state.readout.mean(-2, keepdim=True) if centered else state.readout
    rows = readout.take_along_dim(class_indices[:, None, None], dim=-2).squeeze(-2)
    weights = (state.word_vectors[state.code.ids] * rows[state.code.rows]).sum(-1)
    only = torch.zeros((), dtype=torch.long, device=weights.device)
    return compute_attribution_tensor(state.code.values.to(weights.dtype), weights[None], only)


@full_precision()
def code_identity_error(state: SparseCircuitState) -> Float[Tensor, " B"]:
    """`identity_error` of a sparse state."""
    worst = torch.zeros_like(state.logits[:, 0])
    for index in range(state.logits.shape[-1]):
        classes = torch.full_like(worst, index, dtype=torch.long)
        worst = worst.maximum(code_identity_gap(state, index, attribute_code(state, classes, centered=False)))
    return worst


@full_precision()
def code_identity_gap(state: SparseCircuitState, index: int, attributions: Float[Tensor, " K"]) -> Float[Tensor, " B"]:
    """`identity_error` of one class, from its attributions in the order of the code."""
    rows, nothing = state.code.rows, torch.zeros_like(state.logits[:, index])
    total, size = (nothing.index_add(0, rows, values) for values in (attributions, attributions.abs()))
    return (state.logits[:, index] - total - state.b_eff[:, index]).abs() / size.clamp(min=1)


def worst_gap(*gaps: float) -> float:
    """The greatest gap. What is not a number is worse than any: `max` would drop it, and a broken model would pass."""
    return math.nan if any(map(math.isnan, gaps)) else max(gaps)


@full_precision()
def identity_error(state: CircuitState) -> Float[Tensor, "*batch"]:
    """Worst relative gap, over classes, between a logit and the sum of its attributions and bias.

    `|logit - sum(attr) - b_eff| / max(1, sum |attr|)`: at most 1e-5 in fp32 and 1e-10 in fp64.
    """
    # Words that are active nowhere in the batch contribute nothing: leave their columns out.
    active = (state.sparse_vector != 0).reshape(-1, len(state.word_vectors)).any(0).nonzero().flatten()
    activations, vectors = state.sparse_vector[..., active], state.word_vectors[active]
    worst = torch.zeros_like(state.logits[..., 0])
    only = torch.zeros_like(worst, dtype=torch.long)
    for index in range(state.logits.shape[-1]):
        row = state.readout[..., index : index + 1, :] @ vectors.T
        attributions = compute_attribution_tensor(activations, row, only)
        gap = (state.logits[..., index] - attributions.sum(-1) - state.b_eff[..., index]).abs()
        worst = worst.maximum(gap / attributions.abs().sum(-1).clamp(min=1))
    return worst
