"""Progress of long work. The library calls back; what is shown, and where, is up to the caller."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Step:
    """One step of a longer task is done."""

    task: str
    """What is being done, in words a person reads."""
    done: int
    total: int
    figures: Mapping[str, float] = field(default_factory=dict)
    """Numbers worth watching, by name."""


OnStep = Callable[[Step], None]


def silent(step: Step) -> None:
    """Show nothing."""
    del step
