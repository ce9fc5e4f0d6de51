"""The two formulas of a B-cos layer."""

import torch
from jaxtyping import Float
from torch import Tensor


def unit_rows(weights: Float[Tensor, "H V"]) -> Float[Tensor, "H V"]:
    """Weights with every row scaled to length one."""
    return weights / weights.norm(dim=-1, keepdim=True).clamp(min=1e-12)


def alignment(
    projections: Float[Tensor, "*batch H"], length: Float[Tensor, "*batch 1"], exponent: float
) -> Float[Tensor, "*batch H"]:
    """`|cos|^(B-1)` of an input with each unit weight, from the projections `w_hat . x` and the input's length.

    As good as zero for a zero input.
    """
    cosine = (projections / length.clamp(min=1e-12)).abs()
    # Between exponents 1 and 2 the slope at zero is infinite: a text without words would make every gradient NaN.
    return cosine.clamp(min=torch.finfo(cosine.dtype).tiny).pow(exponent - 1)
