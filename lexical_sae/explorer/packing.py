"""Columns of numbers in JSON: base64 of little-endian numbers, exact to the last bit and small."""

from base64 import b64encode
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

Packed = dict[str, str]
"""`dtype`, a name that NumPy knows, and `base64`."""


def packed_floats(values: Tensor) -> Packed:
    """Numbers in single precision, as the model has them, in reading order."""
    return _packed(values.detach().cpu().to(torch.float32).numpy())


def packed_counts(values: Sequence[int]) -> Packed:
    """Whole numbers from 0, in the fewest bytes that hold the greatest. Example: `[0, 300]` -> uint16"""
    return _packed(np.array(values, dtype=np.min_scalar_type(max(values, default=0))))


def unpacked(column: Packed) -> np.ndarray:
    """The numbers of a column. The page has the same in `packing.js`."""
    from base64 import b64decode

    return np.frombuffer(b64decode(column["base64"]), dtype=np.dtype(column["dtype"]).newbyteorder("<"))


def _packed(values: np.ndarray) -> Packed:
    plain = values.astype(values.dtype.newbyteorder("<"), copy=False)
    return {"dtype": values.dtype.name, "base64": b64encode(plain.tobytes()).decode("ascii")}
