"""What one explanation costs: processor time, and the memory that it takes at its peak."""

import ctypes
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Made = TypeVar("Made")


def timed(run: Callable[[], Made]) -> tuple[Made, float]:
    """What `run` gives, and its milliseconds of processor time, all threads together: a busy machine does not count."""
    started = time.process_time()
    made = run()
    return made, 1000 * (time.process_time() - started)


def peak_megabytes(run: Callable[[], object]) -> float | None:
    """By how much the process's resident memory rises, at its peak, while `run` runs; None where nobody can tell.

    Linux keeps a peak that can be set back. What was freed before is handed to the system first, so that it cannot
    hide what `run` takes.
    """
    _trim()
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        before = _status("VmRSS")
    except OSError:
        return None
    run()
    return max(0.0, (_status("VmHWM") - before) / 1024)


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
