"""Yardsticks on the same rows: the dense twin, and TF-IDF with logistic regression as the floor."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from torch import Tensor
from torch.nn.functional import cross_entropy

from splade.data import TextDataset, TextSplit
from splade.data.batches import TokenisedTexts, length_buckets, shuffled_buckets, tokenise
from splade.device import resolve_device, set_seed
from splade.models.dense import DenseClassifier
from splade.progress import OnStep, Step, silent
from splade.training.optim import AdamWEMA, ParameterGroup

DENSE_RATES = (5e-5, 1e-4, 2e-4)
"""Learning rates that the dense twin may choose from, by validation accuracy."""


@dataclass(frozen=True)
class BaselineScores:
    """How a yardstick does, text by text, so that differences can be paired."""

    name: str
    accuracy: float
    is_correct: tuple[bool, ...]
    """Of each test text, in order."""
    setting: str
    """What was chosen on the validation texts."""
    validation: dict[str, float]
    """Validation accuracy of every setting that was tried."""


def tfidf_baseline(dataset: TextDataset) -> BaselineScores:
    """Words and word pairs, weighted by rarity, into a logistic regression; its strength chosen on validation."""
    vectors = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    train = vectors.fit_transform(dataset.train.texts)
    validation, test = (vectors.transform(split.texts) for split in (dataset.validation, dataset.test))
    models = {
        f"C={strength:g}": LogisticRegression(C=strength, max_iter=2000).fit(train, dataset.train.labels)
        for strength in (1.0, 4.0, 16.0)
    }
    found = {name: float(model.score(validation, dataset.validation.labels)) for name, model in models.items()}
    best = max(found, key=lambda name: found[name])
    return _scores("TF-IDF", models[best].predict(test), dataset.test, best, found)


def dense_twin(
    dataset: TextDataset,
    backbone: str,
    *,
    epochs: int,
    batch_size: int,
    max_length: int,
    rates: Sequence[float] = DENSE_RATES,
    seed: int = 0,
    device: str = "auto",
    on_step: OnStep = silent,
) -> BaselineScores:
    """The same encoder fine-tuned without words in between: best of a few learning rates, chosen on validation."""
    kept: dict[str, DenseClassifier] = {}
    found: dict[str, float] = {}
    for rate in rates:
        set_seed(seed)
        model = DenseClassifier(backbone, len(dataset.label_names)).to(resolve_device(device))
        train = tokenise(model.tokenizer, dataset.train.texts, max_length)
        _fit(model, train, torch.tensor(dataset.train.labels), epochs, batch_size, rate, seed, on_step)
        validation = tokenise(model.tokenizer, dataset.validation.texts, max_length)
        name = f"lr={rate:g}"
        found[name] = float((predict(model, validation) == torch.tensor(dataset.validation.labels)).float().mean())
        if found[name] == max(found.values()):
            kept = {name: copy.deepcopy(model)}
    ((best, model),) = kept.items()
    predicted = predict(model, tokenise(model.tokenizer, dataset.test.texts, max_length))
    return _scores("dense twin", predicted.numpy(), dataset.test, best, found)


def _fit(
    model: DenseClassifier,
    texts: TokenisedTexts,
    labels: Int[Tensor, " T"],
    epochs: int,
    batch_size: int,
    rate: float,
    seed: int,
    on_step: OnStep,
) -> None:
    steps = epochs * -(-len(texts) // batch_size)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimiser = AdamWEMA.Config(schedule="linear", ema=None).build([ParameterGroup("all", parameters, rate)], steps)
    device = parameters[0].device
    model.train()
    for epoch in range(epochs):
        for rows in shuffled_buckets(texts, batch_size, np.random.default_rng([seed, epoch])):
            batch = texts.batch(rows)
            logits = model(batch.input_ids.to(device), batch.attention_mask.to(device))
            loss = cross_entropy(logits, labels[batch.rows].to(device))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            on_step(Step(f"dense twin, lr {rate:g}", optimiser.steps, steps, {"loss": loss.item()}))


@torch.no_grad()
def predict(model: DenseClassifier, texts: TokenisedTexts, batch_size: int = 64) -> Int[Tensor, " T"]:
    """The class of each text."""
    model.eval()
    device = next(model.parameters()).device
    predicted = torch.empty(len(texts), dtype=torch.long)
    for rows in length_buckets(texts, batch_size):
        batch = texts.batch(rows)
        predicted[rows] = model(batch.input_ids.to(device), batch.attention_mask.to(device)).argmax(-1).cpu()
    return predicted


def _scores(
    name: str, predicted: np.ndarray, test: TextSplit, setting: str, validation: dict[str, float]
) -> BaselineScores:
    is_correct = tuple(bool(p == gold) for p, gold in zip(predicted.tolist(), test.labels, strict=True))
    return BaselineScores(name, sum(is_correct) / len(is_correct), is_correct, setting, validation)
