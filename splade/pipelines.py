"""From an experiment's settings to a trained, measured model."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from splade.config.schema import ExperimentConfig
from splade.data import TextDataset, TextSplit, load_text_dataset
from splade.data.batches import length_buckets, tokenise
from splade.device import resolve_device, set_seed
from splade.mechanistic.attribution import identity_error
from splade.models.lexical_sae import CLASSIFY, LexicalSAE
from splade.progress import OnStep, Step, silent
from splade.training.fit import FitSettings, fit


@dataclass(frozen=True)
class Scores:
    """How a model does on texts it was not trained on."""

    accuracy: float
    majority: float
    """Accuracy of always naming the most frequent label."""
    active_words: float
    """Mean number of active words per text."""
    identity_error: float
    """Worst relative gap between a logit and its decomposition."""
    texts: int
    texts_cut: int
    """Texts longer than the model reads."""


@dataclass(frozen=True)
class TrainedRun:
    """A trained model with the data it came from and its test scores."""

    model: LexicalSAE
    dataset: TextDataset
    scores: Scores


def setup_and_train(
    config: ExperimentConfig,
    device: str = "auto",
    on_step: OnStep = silent,
    on_note: Callable[[str], None] = lambda _: None,
) -> TrainedRun:
    """Load the data, build the model, train it with the first seed, and score it on the test split.

    What was decided about the data is told through `on_note` before the first step.
    """
    seed = config.evaluation.seeds[0]
    data = config.data
    dataset = load_text_dataset(
        data.dataset_name,
        path=data.path,
        train_samples=data.train_samples,
        test_samples=data.test_samples,
        seed=seed,
        text_column=data.text_column,
        label_column=data.label_column,
        skip_bad_rows=data.skip_bad_rows,
    )
    for note in dataset.notes:
        on_note(note)
    set_seed(seed)
    model = LexicalSAE.from_backbone(config.model, {CLASSIFY: dataset.label_names}).to(resolve_device(device))
    texts = tokenise(model.tokenizer, dataset.train.texts, model.max_length)
    fit(model, texts, dataset.train.labels, FitSettings(seed=seed), on_step)
    return TrainedRun(model, dataset, score(model, dataset.test, on_step))


@torch.no_grad()
def score(model: LexicalSAE, split: TextSplit, on_step: OnStep = silent, batch_size: int = 64) -> Scores:
    """Accuracy, active words and identity error over a split."""
    model.eval()
    device = next(model.parameters()).device
    texts = tokenise(model.tokenizer, split.texts, model.max_length)
    gold = torch.tensor(split.labels)
    correct, active, worst, done = 0, 0, 0.0, 0
    for rows in length_buckets(texts, batch_size):
        batch = texts.batch(rows)
        state = model.classify_document(batch.input_ids.to(device), batch.attention_mask.to(device))
        if not state.logits.isfinite().all():
            raise FloatingPointError("the model's logits are not numbers (NaN or infinity); its weights are damaged")
        correct += int((state.logits.argmax(-1).cpu() == gold[rows]).sum())
        active += int((state.sparse_vector > 0).sum())
        worst = max(worst, float(identity_error(state).max()))
        done += len(rows)
        on_step(Step("testing", done, len(texts)))
    majority = int(gold.bincount().max())
    count = len(split)
    return Scores(correct / count, majority / count, active / count, worst, count, texts.num_cut)
