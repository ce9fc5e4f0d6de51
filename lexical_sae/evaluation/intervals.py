"""Means and shares with intervals, so that no figure stands alone."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, TypeAdapter
from scipy import stats

from lexical_sae.utils.errors import DataError

Number = Annotated[float, BeforeValidator(lambda value: math.nan if value is None else value)]
"""A float that strict JSON writes as null where it is not a number."""


@dataclass(frozen=True)
class Interval:
    """A mean and the limits of its 95 % confidence interval; None with fewer than two values."""

    mean: Number
    low: float | None
    high: float | None
    count: int


def mean_and_interval(values: Sequence[float]) -> Interval:
    """Mean of the values with Student's 95 % interval.

    Example: `[1, 2, 3]` -> mean 2, from -0.48 to 4.48
    """
    if not values:
        raise DataError("there is no value to take the mean of")
    mean = float(np.mean(values))
    if len(values) < 2:
        return Interval(mean, None, None, len(values))
    spread = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    reach = float(stats.t.ppf(0.975, len(values) - 1)) * spread
    return Interval(mean, mean - reach, mean + reach, len(values))


def ends_of_equal_values(value: float, count: int, least: float = 0.0, most: float = 1.0) -> tuple[float, float]:
    """95 % confidence limits of a mean when all `count` values are the same, so that resamples have no spread.

    The share r of texts with another value is so small that none was met: at most `(1 - r)^count = 0.025`, the end of
    the exact interval of Clopper and Pearson. At worst those have the least or the greatest value that there can be.

    Example: 10 of 10 right -> from 0.69 to 1; none of 10 -> from 0 to 0.31
    """
    unmet = 1 - 0.025 ** (1 / count)
    return value - unmet * (value - least), value + unmet * (most - value)


def paired_bootstrap(ours: Sequence[bool], theirs: Sequence[bool], rounds: int = 10_000, seed: int = 0) -> Interval:
    """Difference of two accuracies on the same texts, with a 95 % bootstrap interval over texts.

    Example: both right on the same of 100 texts -> 0, from -0.04 to 0.04 (`ends_of_equal_values`)
    """
    if len(ours) != len(theirs) or not len(ours):
        raise DataError(f"both must have been scored on the same texts, got {len(ours)} and {len(theirs)}")
    difference = np.asarray(ours, dtype=float) - np.asarray(theirs, dtype=float)
    generator = np.random.default_rng(seed)
    # A resample of n texts is a multinomial count of the three possible differences.
    kinds, counts = np.unique(difference, return_counts=True)
    if len(kinds) == 1:
        ends = ends_of_equal_values(float(kinds[0]), len(difference), least=-1.0)
        return Interval(float(kinds[0]), *(ends if len(difference) > 1 else (None, None)), len(difference))
    draws = generator.multinomial(len(difference), counts / len(difference), size=rounds)
    low, high = np.quantile(draws @ kinds / len(difference), [0.025, 0.975])
    return Interval(float(difference.mean()), float(low), float(high), len(difference))


def share_interval(
    parts: Sequence[float], wholes: Sequence[float], rounds: int = 1000, seed: int = 0
) -> tuple[float, float] | tuple[None, None]:
    """Ends of the 95 % bootstrap interval of `sum(parts) / sum(wholes)`, one of each per text.

    Texts are drawn, not words: the words of a text stand and fall together. A text without weight says nothing and is
    left out; fewer than two give no interval. Where the share is the same in every text, see `ends_of_equal_values`.

    Example: parts 1 and 0 of wholes 1 and 1 -> from 0 to 1
    """
    part, whole = (np.asarray(values, dtype=float)[np.asarray(wholes) > 0] for values in (parts, wholes))
    count = len(whole)
    if count < 2:
        return None, None
    share = float(part.sum() / whole.sum())
    if np.allclose(part, share * whole, rtol=1e-9, atol=0):
        return ends_of_equal_values(share, count)
    generator = np.random.default_rng(seed)
    draws = (np.bincount(generator.integers(count, size=count), minlength=count) for _ in range(rounds))
    low, high = np.quantile([draw @ part / (draw @ whole) for draw in draws], [0.025, 0.975])
    return float(low), float(high)


def read_result(result_type: object, plain: Any) -> Any:
    """A result from plain data. Raises pydantic's ValidationError where the data does not fit the type.

    Example: `read_result(Interval, {"mean": 0.5, "low": 0.4, "high": 0.6, "count": 9}).mean -> 0.5`
    """
    return _adapter(result_type).validate_python(plain)


@cache
def _adapter(result_type: Any) -> Any:
    return TypeAdapter(result_type)
