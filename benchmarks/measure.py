"""Seconds of one thread, and the growth of resident memory."""

import ctypes
import gc
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch


def seconds(sides: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """CPU seconds of each side, the best of a first round and `repeats` more; sides take turns, so that noise meets all
    alike. First calls allocate memory; that costs milliseconds, which count only where everything is that short."""
    torch.set_num_threads(1)
    best = dict.fromkeys(sides, float("inf"))
    for _ in range(1 + repeats):
        for name, run in sides.items():
            start = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - start)
    return best


def memory_growth(run: Callable[[], object]) -> float:
    """Megabytes by which the resident memory rises, at its peak, while `run` runs. Linux only."""
    gc.collect()
    # What was freed before may still count as resident, and would hide what `run` takes.
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    run()
    return (_status("VmHWM") - before) / 1024


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field + ":")).split()[1])


def memory_in_a_new_process(task: str, batch: int, length: int) -> float:
    """`memory_growth` of a named task in a process of its own, so that no side inherits another's memory."""
    command = [sys.executable, "-m", "benchmarks.memory", task, str(batch), str(length)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])
