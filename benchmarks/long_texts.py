"""Long texts cut and read whole: the table of words, on the same rows, with and without rows that could be zero.

    python -m benchmarks.long_texts imdb --rows 2000 --tests 5000 --needles 100

Each table is fitted without context, on the first window of the training texts or on all of them; the words' mean
states are read once, for all. Then short test texts are hidden in neutral filler (`lexical-sae long-context`). Beside
them stands TF-IDF with logistic regression.
"""

import argparse
import time
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from lexical_sae.data import TextDataset, TextSplit, load_text_dataset
from lexical_sae.models.lexical_sae import CLASSIFY, LexicalSAE
from lexical_sae.models.word_views import cut_to_window, without_context
from lexical_sae.recipes import recipe_by_name
from lexical_sae.runs.inputs import documents
from lexical_sae.runs.measuring.scoring import Scores, score
from lexical_sae.studies.long_context.measuring import LongContextPlan, measure_long_context
from lexical_sae.training import word_table
from lexical_sae.training.baselines.tfidf import tfidf_baseline
from lexical_sae.training.folds import random_folds

SHORT = 600
"""Characters of a test text that may be hidden, at most."""
CERTAINTIES = (0.0, 1.0, 2.0)


def main() -> None:
    """Fit, score and print, one line for each table."""
    asked = _arguments()
    dataset = load_text_dataset(asked.data, train_samples=asked.rows, test_samples=asked.tests, seed=0)
    settings = recipe_by_name("anchored").model
    whole = LexicalSAE.from_backbone(settings, {CLASSIFY: dataset.label_names}, dataset.train.texts)
    print(f"{len(dataset.train)} training texts, {len(dataset.test)} test texts of {dataset.name}")
    beside = tfidf_baseline(dataset)
    print(f"TF-IDF {100 * beside.accuracy:.1f}", flush=True)
    started = time.process_time()
    vectors = word_table.word_vectors(whole, replace(documents(whole, dataset.train), most_windows=1))
    word_table.word_vectors = lambda *_, **__: vectors
    print(f"mean states read in {time.process_time() - started:.0f} s of processor time", flush=True)
    first, closed = None, whole.gate.closed.clone()
    for name, model in (("first window", cut_to_window(whole)), ("whole", whole)):
        for certainty in CERTAINTIES:
            scores = _fit_and_score(model, closed, dataset, certainty)
            first = first or scores
            print(
                f"{name}, least_certainty {certainty:g}: {100 * scores.accuracy:.1f} with {scores.active_words:.0f} "
                f"words per text; {_difference(scores, first)} against the first line, "
                f"{_difference(scores, beside)} against TF-IDF",
                flush=True,
            )
            _hide(without_context(whole), _short(dataset.test, asked.needles))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--tests", type=int, default=5000)
    parser.add_argument("--needles", type=int, default=100)
    return parser.parse_args()


def _fit_and_score(model: LexicalSAE, closed: Tensor, dataset: TextDataset, certainty: float) -> Scores:
    head = model.head()
    head.config = head.config.model_copy(update={"least_certainty": certainty})
    # Each fit closes what it empties.
    model.gate.closed.copy_(closed)
    train = documents(model, dataset.train)
    word_table.fit_word_table(model, train, random_folds(train.texts.ids, 0), ())
    return score(without_context(model), dataset.test)


def _short(test: TextSplit, count: int) -> TextSplit:
    """Short test texts, shuffled."""
    rows = np.random.default_rng(0).permutation(len(test)).tolist()
    return test.take([row for row in rows if len(test.texts[row]) <= SHORT][:count])


def _hide(model: LexicalSAE, needles: TextSplit) -> None:
    """Read whole whatever the table was fitted on: what filler does is asked of the table."""
    found = measure_long_context(model, needles, LongContextPlan(lengths=(512,), needles=len(needles)))
    for point in found.points:
        print(
            f"    {point.length} tokens, {point.place}: same label {100 * point.same_label.mean:.0f} %, accuracy "
            f"{100 * point.accuracy.mean:.0f} % (alone {100 * found.alone_accuracy.mean:.0f} %)",
            flush=True,
        )


def _difference(ours: Scores, theirs) -> str:
    gaps = 100 * (np.array(ours.is_correct, dtype=float) - np.array(theirs.is_correct, dtype=float))
    spread = 1.96 * gaps.std() / len(gaps) ** 0.5
    return f"{gaps.mean():+.1f} ({gaps.mean() - spread:+.1f} to {gaps.mean() + spread:+.1f})"


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
