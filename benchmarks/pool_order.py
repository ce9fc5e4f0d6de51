"""Does pooling logits before the gate cost accuracy? `python -m benchmarks.pool_order [ROWS] [SEEDS]` trains both ways.

Gate-first computes the activation of every word at every position before pooling, which is slower and gives other
gradients to inactive words. Everything else is the same: the settings of `experiments/cpu/sst2_cajt.yaml`,
rows, seeds, order of batches, and the width of the kernel, which follows pooled logits both ways.
"""

import sys
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import PropertyMock, patch

from lexical_sae.config.load import load_config
from lexical_sae.models.layers.activation import JumpReLUGate
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.runs import setup_and_train

EXPERIMENT = Path(__file__).parent.parent / "experiments" / "cpu" / "sst2_cajt.yaml"


def main() -> None:
    rows, seeds = (int(given) for given in (sys.argv[1:] + ["5000", "3"][len(sys.argv) - 1 :])[:2])
    config = load_config(EXPERIMENT)
    config = config.model_copy(update={"data": config.data.model_copy(update={"train_samples": rows})})
    for seed in range(seeds):
        for order in ("pool first", "gate first"):
            with pooling(order):
                run = setup_and_train(config, seed=seed)
            print(
                f"seed {seed}, {order}: validation {run.validation.accuracy:.1%} (CE {run.validation.ce:.4f}), "
                f"dev {run.scores.accuracy:.1%}, {run.scores.active_words:.0f} words, {run.seconds:.0f} s",
                flush=True,
            )


@contextmanager
def pooling(order: str):
    """Documents are pooled in this order."""
    watch = JumpReLUGate._watch

    def watch_pooled(gate, z):
        watch(gate, z if z.ndim == 2 else z.amax(1))

    is_first = PropertyMock(return_value=order == "pool first")
    with patch.object(LexicalSAE, "_pools_logits_first", is_first), patch.object(JumpReLUGate, "_watch", watch_pooled):
        yield


if __name__ == "__main__":
    main()
