"""The two formulas of a B-cos layer."""

from jaxtyping import Float
from torch import Tensor


def unit_rows(weights: Float[Tensor, "H V"]) -> Float[Tensor, "H V"]:
    """Weights with every row scaled to length one."""
    return weights / weights.norm(dim=-1, keepdim=True).clamp(min=1e-12)


def alignment(
    projections: Float[Tensor, "*batch H"], length: Float[Tensor, "*batch 1"], exponent: float
) -> Float[Tensor, "*batch H"]:
    """`|cos|^(B-1)` of an input with each unit weight, from the projections `w_hat . x` and the input's length.

    Zero for a zero input.
    """
    return (projections / length.clamp(min=1e-12)).abs().pow(exponent - 1)
