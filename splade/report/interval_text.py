"""Means with their intervals as text, from plain data."""

import math
from collections.abc import Callable, Mapping
from typing import Any

NOT_MEASURED = "–"


def share_text(interval: Mapping[str, Any] | None) -> str:
    """A share in percent. Example: mean 0.5, from 0.4 to 0.6 -> `50.0% (40.0% to 60.0%)`."""
    return _text(interval, lambda value: f"{value:.1%}")


def number_text(interval: Mapping[str, Any] | None, digits: int = 2) -> str:
    """A number. Example: mean 1.5 without an interval -> `1.50`."""
    return _text(interval, lambda value: f"{value:.{digits}f}")


def is_missing(value: float | None) -> bool:
    return value is None or math.isnan(value)


def _text(interval: Mapping[str, Any] | None, write: Callable[[float], str]) -> str:
    if interval is None or is_missing(interval["mean"]):
        return NOT_MEASURED
    mean, low, high = interval["mean"], interval["low"], interval["high"]
    return write(mean) if low is None or high is None else f"{write(mean)} ({write(low)} to {write(high)})"
