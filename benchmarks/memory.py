"""One memory measurement: `python -m benchmarks.memory TASK BATCH LENGTH` prints megabytes."""

import sys

import torch

from benchmarks import contenders as c
from splade.evaluation.arena.cost import peak_megabytes


def task(name: str, batch: c.Batch):  # noqa: ANN201
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
    print(peak_megabytes(task(name, c.full(batch, length))))


if __name__ == "__main__":
    main()
