"""Cost of a training step with all words and with live ones only: `python -m benchmarks.live_words [ROUNDS]`.

Both sides take the same steps of the recipe `neighbours` on the same texts of `movie_snippets`: once as texts with
labels, once as sentences with tags (artificial: time does not depend on them). One thread, best of the rounds.
"""

import sys
from functools import partial

import torch

from benchmarks.measure import seconds
from lexical_sae.config.load import build_config
from lexical_sae.data import load_text_dataset
from lexical_sae.data.batches import tokenize
from lexical_sae.models.assembly import dimension_embeddings
from lexical_sae.models.lexical_sae import CLASSIFY, TAG, LexicalSAE
from lexical_sae.training.loss.criterion import Criterion
from lexical_sae.training.preparation.calibrated_start import open_about_each
from lexical_sae.training.tasks import IGNORED, Documents, Positions, Task
from lexical_sae.training.word_vectors import learn_together

BATCH = 32


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    given = load_text_dataset("movie_snippets").train
    texts, labels = given.texts[:BATCH], given.labels[:BATCH]
    for head in (CLASSIFY, TAG):
        settings = build_config({"recipe": "neighbours", "data": {"dataset_name": "movie_snippets"}})
        parts = settings.model if head == CLASSIFY else settings.model.model_copy(update={"neighbourhood": None})
        torch.manual_seed(0)
        model = LexicalSAE.from_backbone(parts, {head: ("a", "b", "c")})
        tokens = tokenize(model.tokenizer, texts, 64)
        tags = [[IGNORED, *(token % 3 for token in ids[1:-1]), IGNORED] for ids in tokens.ids]
        task = Documents(tokens, torch.tensor(labels)) if head == CLASSIFY else Positions(tokens, tags)
        training = settings.training
        open_about_each(model, (task.encode(model, range(BATCH)).logits for _ in "1"), round(training.active_target))
        learn_together(model.head(head), dimension_embeddings(model))
        criterion = Criterion(model, head, training, (10, 10, 20))
        model.train()
        step = partial(_step, model, criterion, task)
        sides = {"all words": partial(step, live_only=False), "live words": partial(step, live_only=True)}
        found = seconds(sides, rounds)
        columns = len(task.encode(model, range(BATCH), live_only=True).words)  # pyright: ignore[reportArgumentType]
        print(
            f"{head}: all {len(model.dimensions):,} words {found['all words']:.2f} s, {columns:,} live words "
            f"{found['live words']:.2f} s, {found['all words'] / found['live words']:.1f} times faster"
        )


def _step(model: LexicalSAE, criterion: Criterion, task: Task, *, live_only: bool) -> None:
    encoded = task.encode(model, range(BATCH), live_only=live_only)
    loss, _ = criterion.loss(model, encoded, share=1.0, is_constrained=True)
    loss.backward()
    model.zero_grad(set_to_none=True)


if __name__ == "__main__":
    main()
