"""Where things go in the frontier's picture: rulers with round ticks, and labels that do not lie on one another."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Ruler:
    """Values to pixels along one side of a panel, with readable ticks."""

    low: float
    high: float
    start: float
    """Pixel of the low end."""
    end: float
    ticks: Sequence[float]
    place: Callable[[float], float] = float
    """What is even along the ruler: the value itself, or say its logarithm."""

    def __call__(self, value: float) -> float:
        low, high = self.place(self.low), self.place(self.high)
        share = (self.place(value) - low) / (high - low)
        return round(self.start + (self.end - self.start) * share, 1)


def word_ruler(values: Sequence[float], start: float, end: float) -> Ruler:
    """A ruler for numbers of words: equal steps are nearly equal factors, and zero has a place too."""
    low, high = 0.98 * min(values), 1.02 * max(values) + 1
    powers = [10.0**power for power in range(6)]
    inside = [[m * p for p in powers for m in steps if low <= m * p <= high] for steps in ((1, 2, 5), (1,))]
    ticks = next((found for found in inside if 3 <= len(found) <= 7), None) or _ticks_inside(low, high)
    return Ruler(low, high, start, end, ticks, math.log1p)


def share_ruler(values: Sequence[float], start: float, end: float) -> Ruler:
    """A ruler for shares, no more of the way from 0 to 1 than they need."""
    low, high = max(0.0, min(values) - 0.005), min(1.0, max(values) + 0.005)
    step = _round_step(low, high)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = [round(step * i, 9) for i in range(first, last + 1)]
    return Ruler(ticks[0], ticks[-1], start, end, ticks)


def _round_step(low: float, high: float, most: int = 5) -> float:
    """The smallest round step that takes at most `most` steps from low to high. Example: 78 to 85 -> 2"""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-9))


def _ticks_inside(low: float, high: float) -> list[float]:
    step = _round_step(low, high)
    return [round(step * i, 9) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def spread(wanted: Sequence[float], sizes: Sequence[float], low: float, high: float) -> list[float]:
    """Centres of things that do not overlap, in the order and near the places they are wanted at.

    They lie between `low` and `high` if all of them together have room there.

    Example: wanted at 5 and 6, each 4 long, between 0 and 20 -> 5 and 9
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed, edge = list(wanted), low
    for i in order:
        placed[i] = max(placed[i], edge + sizes[i] / 2)
        edge = placed[i] + sizes[i] / 2
    edge = high
    for i in reversed(order):
        placed[i] = min(placed[i], edge - sizes[i] / 2)
        edge = placed[i] - sizes[i] / 2
    return placed
