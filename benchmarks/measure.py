"""CPU seconds of one thread; peak memory: `python -m benchmarks.measure TASK BATCH LENGTH` prints megabytes."""

import subprocess
import sys
import time
from collections.abc import Callable

import torch

from benchmarks import contenders as c
from lexical_sae.utils.cost import peak_megabytes


def seconds(sides: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """CPU seconds of each side, the best of `repeats` + 1 rounds; sides take turns, so that noise affects all alike."""
    torch.set_num_threads(1)
    best = dict.fromkeys(sides, float("inf"))
    for _ in range(1 + repeats):
        for name, run in sides.items():
            start = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - start)
    return best


def memory_in_a_new_process(task: str, batch: int, length: int) -> float:
    """Peak megabytes of a named task in a new process, so that no side inherits another's memory."""
    command = [sys.executable, "-m", "benchmarks.measure", task, str(batch), str(length)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def _task(name: str, batch: c.Batch):  # noqa: ANN201
    if name == "dense_step":
        dense = c.dense_model()
        return c.training_step(dense, c.dense_logits(dense), [batch])
    model = c.lexical_model(near=name.startswith("near"))
    return {
        "plain_head": lambda: c.head_step(model, batch, c.plain_pool),
        "near_head": lambda: c.head_step(model, batch, c.fused_pool),
        "whole_head": lambda: c.head_step(model, batch, c.fused_pool),
        "near_step": lambda: c.training_step(model, c.fused_logits(model), [batch]),
        "whole_step": lambda: c.training_step(model, c.fused_logits(model), [batch]),
    }[name]()


def main() -> None:
    name, batch, length = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(2)
    print(peak_megabytes(_task(name, c.full(batch, length))))


if __name__ == "__main__":
    main()
