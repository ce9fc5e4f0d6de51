"""What a text of a data set costs with each encoder: milliseconds of reading, and of learning from it.

    python -m benchmarks.encoder_cost sst2 bundled:minilm bundled:mpnet

It is the rehearsal of `training.minutes`; set OMP_NUM_THREADS=1 for one core.
"""

import sys
import time

from lexical_sae.data import load_text_dataset
from lexical_sae.data.batches import tokenize
from lexical_sae.models.pretrained import load_backbone
from lexical_sae.training.preparation.time_plan import encoder_cost


def main(dataset: str, *encoders: str) -> None:
    """Print a line per encoder: wall-clock, and processor time, which a busy machine does not change as much."""
    texts = load_text_dataset(dataset).train.texts
    for name in encoders:
        backbone = load_backbone(name, reads_logits=False)
        tokenized = tokenize(backbone.tokenizer, texts, 128)
        for kind, clock in (("wall-clock", time.perf_counter), ("processor", time.process_time)):
            cost = encoder_cost(backbone, tokenized, clock=clock)
            print(f"{name}: {1000 * cost.reading:.1f} ms reading, {1000 * cost.learning:.1f} ms learning ({kind})")


if __name__ == "__main__":
    main(*sys.argv[1:])
