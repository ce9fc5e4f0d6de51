"""What explaining costs beside predicting: `python -m benchmarks.explanation_cost [MODEL]` prints ratios.

Processor time of one thread, best of five rounds in one process, on 128 reviews at once and on 40 one by one.
"""

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from splade import LexicalSAE
from splade.data import load_text_dataset
from splade.inference import explain, predict

ROUNDS = 5


def main() -> None:
    torch.set_num_threads(1)
    model = LexicalSAE.from_pretrained(sys.argv[1] if len(sys.argv) > 1 else "results/quickstart/model")
    texts = list(load_text_dataset("movie_snippets").test.texts[:128])
    ways: dict[str, Callable[[Sequence[str]], Any]] = {
        "predict": lambda some: predict(model, some),
        "words alone": lambda some: explain(model, some, effects=False, places=False),
        "with effects": lambda some: explain(model, some, places=False),
        "with places": lambda some: explain(model, some, effects=False),
        "everything": lambda some: explain(model, some),
    }
    for title, calls in (("128 at once", [texts]), ("one by one", [[text] for text in texts[:40]])):
        best = dict.fromkeys(ways, float("inf"))
        for _ in range(ROUNDS):
            for way, run in ways.items():
                started = time.process_time()
                for some in calls:
                    run(some)
                best[way] = min(best[way], time.process_time() - started)
        for way, seconds in best.items():
            each = 1000 * seconds / sum(map(len, calls))
            print(f"{title:12} {way:13} {each:7.2f} ms per text {seconds / best['predict']:5.2f}x", flush=True)


if __name__ == "__main__":
    main()
