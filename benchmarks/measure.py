"""Seconds of one thread, and memory of a process of its own."""

import subprocess
import sys
import time
from collections.abc import Callable

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


def memory_in_a_new_process(task: str, batch: int, length: int) -> float:
    """Peak megabytes of a named task in a process of its own, so that no side inherits another's memory."""
    command = [sys.executable, "-m", "benchmarks.memory", task, str(batch), str(length)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])
