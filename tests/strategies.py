"""Shared hypothesis strategies."""

import torch
from hypothesis import strategies as st


@st.composite
def tensors(draw, *shape: int, low: float = -3.0, high: float = 3.0, dtype: torch.dtype = torch.float64):
    """A tensor of the given shape, its values drawn from a seed: fast, and shrinks to small seeds."""
    seed = draw(st.integers(0, 10_000))
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(shape, generator=generator, dtype=dtype) * (high - low) + low


@st.composite
def sparse_vectors(draw, rows: int, size: int, dtype: torch.dtype = torch.float64):
    """Non-negative vectors, most entries zero; now and then a row with none at all."""
    values = draw(tensors(rows, size, low=0, high=2, dtype=dtype))
    keep = draw(tensors(rows, size, low=0, high=1)) < draw(st.sampled_from([0.0, 0.1, 0.4]))
    return values * keep
