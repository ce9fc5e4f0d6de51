"""What the exact methods need from a head and a state."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from lexical_sae.models.circuit_state import SparseCircuitState
from lexical_sae.models.sparse_code import SparseCode


@runtime_checkable
class Head(Protocol):
    """A head as this package sees it: it decides from active words, and declares whether it is two ReLU layers."""

    @property
    def is_piecewise_linear(self) -> bool:
        """Whether it computes `class_weights relu(word_vectors' s + hidden_bias) + class_bias` with these names."""
        ...

    def read(self, code: SparseCode) -> SparseCircuitState: ...


class ReluLayers(NamedTuple):
    """What a state does not carry of a head `class_weights relu(word_vectors' s + hidden_bias) + class_bias`."""

    hidden_bias: Float[Tensor, " H"]
    class_weights: Float[Tensor, "C H"]
    class_bias: Float[Tensor, " C"]


def relu_layers(head: Head) -> ReluLayers | None:
    """The layers of a piecewise linear head; None of any other, whose decisions have no closed form."""
    if not head.is_piecewise_linear:
        return None
    parts: Any = head
    return ReluLayers(parts.hidden_bias, parts.class_weights, parts.class_bias)
