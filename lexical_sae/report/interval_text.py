"""Means with their confidence intervals as text; each is an object with `mean`, `low` and `high`, or read from JSON."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

NOT_MEASURED = "–"


@runtime_checkable
class HasLimits(Protocol):
    """A mean with the limits of its confidence interval."""

    @property
    def mean(self) -> float | None: ...

    @property
    def low(self) -> float | None: ...

    @property
    def high(self) -> float | None: ...


Given = HasLimits | Mapping[str, Any] | None


def share_text(interval: Given, *, limits: bool = True) -> str:
    """A share in percent. Example: mean 0.5, from 0.4 to 0.6 -> `50.0% (40.0% to 60.0%)`."""
    return _text(interval, lambda value: f"{value:.1%}", limits)


def number_text(interval: Given, digits: int = 2, *, limits: bool = True) -> str:
    """A number. Example: mean 1.5 without an interval -> `1.50`."""
    return _text(interval, lambda value: f"{value:.{digits}f}", limits)


def is_missing(value: float | None) -> bool:
    """Whether there is no such number."""
    return value is None or math.isnan(value)


def _text(interval: Given, write: Callable[[float], str], limits: bool) -> str:
    if interval is None:
        return NOT_MEASURED
    parts = ("mean", "low", "high")
    mean, low, high = (
        (interval[p] for p in parts) if isinstance(interval, Mapping) else (getattr(interval, p) for p in parts)
    )
    if mean is None or math.isnan(mean):
        return NOT_MEASURED
    if not limits or low is None or high is None:
        return write(mean)
    return f"{write(mean)} ({write(low)} to {write(high)})"
