"""Equality of nested state to the last bit."""

from typing import Any

import torch

from lexical_sae.training.resuming.checkpoint import pack


def same(left: Any, right: Any) -> bool:
    """Whether both hold the same structure, types, numbers and tensors; NaN equals NaN."""
    (left_json, left_tensors), (right_json, right_tensors) = pack(left), pack(right)
    # repr, unlike ==, tells 1 from 1.0 and True, and -0.0 from 0.0.
    return repr(left_json) == repr(right_json) and all(
        a.dtype == b.dtype and a.shape == b.shape and torch.equal(bits(a), bits(b))
        for a, b in zip(left_tensors.values(), right_tensors.values(), strict=True)
    )


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)
