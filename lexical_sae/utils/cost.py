"""What work costs, an explanation or a training run: time, and the memory that it takes at its peak."""

import ctypes
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict, TypeVar

Made = TypeVar("Made")


def timed(run: Callable[[], Made]) -> tuple[Made, float]:
    """What `run` gives, and its milliseconds of processor time, all threads together: a busy machine does not count."""
    started = time.process_time()
    made = run()
    return made, 1000 * (time.process_time() - started)


class WorkCost(TypedDict):
    """Wall time and memory, as plain data."""

    seconds: float
    peak_megabytes: float | None


def with_cost(run: Callable[[], Made]) -> tuple[Made, WorkCost]:
    """What `run` gives, and what it cost, rounded for people."""
    started = time.monotonic()
    made, megabytes = with_peak(run)
    seconds = round(time.monotonic() - started, 1)
    return made, {"seconds": seconds, "peak_megabytes": None if megabytes is None else round(megabytes)}


def peak_megabytes(run: Callable[[], object]) -> float | None:
    """By how much the process's resident memory rises, at its peak, while `run` runs; None where it cannot be
    measured."""
    return with_peak(run)[1]


def with_peak(run: Callable[[], Made]) -> tuple[Made, float | None]:
    """What `run` gives, and the megabytes of `peak_megabytes`; what a GPU holds is not among them.

    Linux keeps a peak that can be set back, so nothing inside `run` may measure its own. What was freed before is
    handed to the system first, so that it cannot hide what `run` takes.
    """
    _trim()
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        before = _status("VmRSS")
    except OSError:
        return run(), None
    made = run()
    return made, max(0.0, (_status("VmHWM") - before) / 1024)


def _trim() -> None:
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except (OSError, AttributeError):
        # Another C library: what it holds back stays held back.
        return


def _status(field: str) -> int:
    """A line of the process's status, in kilobytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    return int(next(line for line in lines if line.startswith(field + ":")).split()[1])
