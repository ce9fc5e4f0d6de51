"""The two formulas of a B-cos layer."""

from jaxtyping import Float
from torch import Tensor


def unit_rows(weights: Float[Tensor, "H V"]) -> Float[Tensor, "H V"]:
    """Weights with every row scaled to length one."""
    return weights / weights.norm(dim=-1, keepdim=True).clamp(min=1e-12)


def alignment(
    projections: Float[Tensor, "*batch H"], inputs: Float[Tensor, "*batch V"], exponent: float
) -> Float[Tensor, "*batch H"]:
    """`|cos|^(B-1)` of an input with each unit weight, from the projections `w_hat . x`; zero for a zero input."""
    length = inputs.norm(dim=-1, keepdim=True).clamp(min=1e-12)
    return (projections / length).abs().pow(exponent - 1)
