"""What a text of a data set costs with each encoder: milliseconds of reading, and of learning from it.

    python -m benchmarks.encoder_cost sst2 bundled:minilm bundled:mpnet

It is the rehearsal of `training.minutes`; set OMP_NUM_THREADS=1 for one core. In bfloat16 too, where this CPU can.
"""

import sys
import time

import torch

from lexical_sae.data import load_text_dataset
from lexical_sae.data.batches import tokenize
from lexical_sae.models.pretrained import load_backbone
from lexical_sae.training.preparation.time_plan import encoder_cost
from lexical_sae.utils.precision import EncoderType, cpu_problem_with_bfloat16, encoder_precision


def main(dataset: str, *encoders: str) -> None:
    """Print a line per encoder: wall-clock, and processor time, which a busy machine does not change as much."""
    texts = load_text_dataset(dataset).train.texts
    types: tuple[EncoderType, ...] = ("float32",) if cpu_problem_with_bfloat16() else ("float32", "bfloat16")
    for name in encoders:
        backbone = load_backbone(name, reads_logits=False)
        tokenized = tokenize(backbone.tokenizer, texts, 128)
        for dtype in types:
            for kind, clock in (("wall-clock", time.perf_counter), ("processor", time.process_time)):
                with encoder_precision(dtype, torch.device("cpu")):
                    cost = encoder_cost(backbone, tokenized, clock=clock)
                told = f"{1000 * cost.reading:.1f} ms reading, {1000 * cost.learning:.1f} ms learning"
                print(f"{name}, {dtype}: {told} ({kind})")


if __name__ == "__main__":
    main(*sys.argv[1:])
