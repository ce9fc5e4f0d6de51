"""Means with their intervals as text, from plain data."""

import math
from collections.abc import Callable, Mapping
from typing import Any

NOT_MEASURED = "–"


def share_text(interval: Mapping[str, Any]) -> str:
    """A share in percent. Example: mean 0.5, from 0.4 to 0.6 -> `50.0% (40.0% to 60.0%)`."""
    return _text(interval, lambda value: f"{value:.1%}")


def number_text(interval: Mapping[str, Any], digits: int = 2) -> str:
    """A number. Example: mean 1.5 without an interval -> `1.50`."""
    return _text(interval, lambda value: f"{value:.{digits}f}")


def _text(interval: Mapping[str, Any], write: Callable[[float], str]) -> str:
    mean, low, high = interval["mean"], interval["low"], interval["high"]
    if mean is None or math.isnan(mean):
        return NOT_MEASURED
    return write(mean) if low is None or high is None else f"{write(mean)} ({write(low)} to {write(high)})"
