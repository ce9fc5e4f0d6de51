"""Does pooling logits before the gate cost accuracy? `python -m benchmarks.pool_order [ROWS] [SEEDS]` trains both ways.

Gate-first forms the strength of every word at every position before it pools, which is the slow way round, and sends
other gradients to words that are closed. Everything else is the same: rows, seeds, order of batches, rates.
"""

import sys
from unittest.mock import PropertyMock, patch

from splade.config.load import build_config
from splade.models.lexical_sae import LexicalSAE
from splade.pipelines import setup_and_train


def main() -> None:
    rows, seeds = (int(given) for given in (sys.argv[1:] + ["5000", "3"][len(sys.argv) - 1 :])[:2])
    for seed in range(seeds):
        for order in ("pool first", "gate first"):
            settings = {
                "recipe": "cajt",
                "seed": seed,
                "data": {"dataset_name": "sst2", "train_samples": rows},
                "model": {"max_length": 64},
                "training": {"max_epochs": 1, "batch_size": 64},
            }
            is_first = PropertyMock(return_value=order == "pool first")
            with patch.object(LexicalSAE, "_pools_logits_first", is_first):
                run = setup_and_train(build_config(settings))
            print(
                f"seed {seed}, {order}: validation {run.validation.accuracy:.1%}, dev {run.scores.accuracy:.1%}, "
                f"{run.scores.active_words:.0f} words, {run.seconds:.0f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
