"""Cost of explaining compared with predicting, and with captum: `python -m benchmarks.explanation_cost [MODEL]`.

Prints milliseconds per text and the ratio to `predict`, for texts in a batch and one by one. All methods take turns in
one process on one thread; times are medians over rounds, in processor time, and so are ratios. Without a model, the
default recipe on the bundled encoder is measured untrained, with about a hundred active words.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any

import torch

from benchmarks import contenders
from lexical_sae import LexicalSAE
from lexical_sae.data import load_text_dataset
from lexical_sae.evaluation.explainers.captum_methods import captum_explainers, explain_text
from lexical_sae.inference import explain, predict
from lexical_sae.inference.methods import METHODS

BAR = 1.15
Way = Callable[[Sequence[str]], Any]


def main() -> None:
    asked = _arguments()
    torch.set_num_threads(1)
    model = LexicalSAE.from_pretrained(asked.model) if asked.model else contenders.lexical_model()
    texts = list(load_text_dataset("movie_snippets").test.texts[: asked.texts])
    ways, alone = our_ways(model.eval()), [[text] for text in texts[: asked.single]]
    report(f"{len(texts)} at once", ways, [texts], asked.rounds)
    report("one by one", ways, alone, asked.rounds)
    if asked.captum:
        try:
            sampled = {one.about: _of_each(partial(explain_text, one, model)) for one in captum_explainers()}
        except ImportError:
            print("captum is not installed and was left out: pip install -r requirements-bench.txt")
            return
        few = {name: ways[name] for name in ("predict", "dla, everything")}
        report("one by one", {**few, **sampled}, alone[: asked.captum], 1)


def our_ways(model: LexicalSAE) -> dict[str, Way]:
    """Predicting, and explaining by every method, with and without its parts."""

    def explained(method: str, **parts: bool) -> Way:
        return lambda some: explain(model, some, method=method, **parts)

    ways: dict[str, Way] = {"predict": lambda some: predict(model, some)}
    for method in METHODS:
        ways[f"{method}, words alone"] = explained(method, effects=False, places=False)
        ways[f"{method}, with places"] = explained(method, effects=False)
        ways[f"{method}, everything"] = explained(method)
    return ways


def report(title: str, ways: dict[str, Way], calls: Sequence[Sequence[str]], rounds: int) -> None:
    """Measure the ways in turn and print a line for each; the first round only warms up where there are several."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds + (rounds > 1)):
        for name, run in ways.items():
            started = time.process_time()
            for some in calls:
                run(some)
            times[name].append(time.process_time() - started)
    count = sum(map(len, calls))
    for name, seconds in times.items():
        ratio = median(ours / plain for ours, plain in zip(seconds[-rounds:], times["predict"][-rounds:], strict=True))
        mark = f"  above {BAR}" if name.endswith("everything") and ratio > BAR else ""
        each = 1000 * median(seconds[-rounds:]) / count
        print(f"{title:12} {name:34} {each:9.2f} ms per text {ratio:8.2f}x{mark}", flush=True)


def _of_each(run: Callable[[str], Any]) -> Way:
    return lambda some: [run(text) for text in some]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What explaining costs beside predicting, and beside captum.")
    parser.add_argument("model", nargs="?", help="folder of a saved model")
    parser.add_argument("--texts", type=int, default=128, help="texts at once")
    parser.add_argument("--single", type=int, default=40, help="texts one by one")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--captum", type=int, default=3, help="texts that captum explains; 0 leaves it out")
    return parser.parse_args()


if __name__ == "__main__":
    main()
