"""Path attribution in closed form: contributions averaged on the straight way from no words to all of them.

Direct attribution leaves a bias that depends on the input, and evidence can hide in it. On the path the bias is
`logit(0)`, the same for every text. Each hidden unit `t a + b` of `s(t) = t s` crosses zero at most once, so the share
of the way it is on is a fraction, and no step needs to be sampled.
"""

from dataclasses import replace

from jaxtyping import Float
from torch import Tensor

from lexical_sae.mechanistic.exact.directions import State
from lexical_sae.mechanistic.exact.forms import Head, relu_layers
from lexical_sae.models.circuit_state import CircuitState, SparseCircuitState
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.precision import full_precision

REFERENCE = "Sundararajan et al. 2017, arXiv:1703.01365"


@full_precision()
def along_path(head: Head, state: State) -> State:
    """The same decisions, written with readouts averaged along the path and with `logit(0)` as their bias.

    What attribution reads off this state are the integrated gradients from the empty text,
    `IG_j = s_j sum_k W2[c, k] m_k W1[k, j]`, and `sum_j IG_j + logit(0) = logit(s)`: `identity_error` measures how
    closely. m_k is the share of the path on which hidden unit k is on.

    Example: `attribute_code(along_path(head, state), labels, centered=True)`
    """
    if getattr(head, "is_linear", False):
        # Every point of the path has the same readout, and the empty text's decision is the bias.
        return state
    layers = relu_layers(head)
    if layers is None:
        raise SettingsError(
            f"a {type(head).__name__} has no path attribution in closed form, because it is not piecewise linear; "
            "use direct attribution or leave_one_out, or train with model.head.kind 'relu'"
        )
    share = share_on(_words_alone(state), layers.hidden_bias)
    empty_text = layers.hidden_bias.relu() @ layers.class_weights.T + layers.class_bias
    return replace(state, readout=layers.class_weights * share[..., None, :], b_eff=empty_text.expand_as(state.logits))


def share_on(slope: Float[Tensor, "*batch H"], start: Float[Tensor, " H"]) -> Float[Tensor, "*batch H"]:
    """Length of `{t in [0, 1]: t slope + start > 0}`.

    Where the sign changes it is `top / (top - low)` of the two ends: a sum of two sizes, so nothing cancels.

    Example: slope 4, start -1 -> 3/4; slope -4, start 1 -> 1/4; slope 0, start 1 -> 1; both 0 -> 0
    """
    end = slope + start
    above, below = end.maximum(start).relu(), (-end.minimum(start)).relu()
    reach = above + below
    return above / reach.masked_fill(reach == 0, 1)


def _words_alone(state: CircuitState | SparseCircuitState) -> Float[Tensor, "*batch H"]:
    """What the words feed the hidden units, without the bias."""
    if isinstance(state, CircuitState):
        return state.sparse_vector @ state.word_vectors
    return state.code.weighted_sum(state.word_vectors)
