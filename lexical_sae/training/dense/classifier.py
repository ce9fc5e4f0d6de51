"""Baselines on the same rows: the dense baseline, and TF-IDF with logistic regression as the floor."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from torch import Tensor
from torch.nn.functional import cross_entropy

from lexical_sae.data import TextDataset, TextSplit
from lexical_sae.data.batches import Batch, TokenizedTexts, batches, tokenize
from lexical_sae.models.dense_baseline import DenseClassifier
from lexical_sae.training.dense.fine_tuning import DenseTraining, best_of_rates, fine_tune
from lexical_sae.utils.device import resolve_device
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.progress import OnStep, Step, silent

STRENGTHS = (1.0, 4.0, 16.0)
"""What the floor's regression may choose from; the weaker its prior, the larger."""


@dataclass(frozen=True)
class BaselineScores:
    """How a baseline does, text by text, so that differences can be paired."""

    name: str
    accuracy: float
    is_correct: tuple[bool, ...]
    """Of each test text, in order."""
    setting: str
    """What was chosen on the validation texts."""
    validation: dict[str, float]
    """Accuracy of every setting that was tried, on the texts that it was chosen on."""
    macro_f1: float | None = None
    """Mean F1 of the classes that occur in the test texts."""


def tfidf_baseline(dataset: TextDataset, on_step: OnStep = silent) -> BaselineScores:
    """Words and word pairs, weighted by rarity, into a logistic regression; its regularization chosen on validation."""
    on_step(Step("TF-IDF, counting words", 0, len(STRENGTHS)))
    vectors, train = _counted_words(dataset.train.texts)
    validation, test = (vectors.transform(split.texts) for split in (dataset.validation, dataset.test))
    models = {}
    for done, activation in enumerate(STRENGTHS):
        models[f"C={activation:g}"] = LogisticRegression(C=activation, max_iter=2000).fit(train, dataset.train.labels)
        on_step(Step("TF-IDF, fitting", done + 1, len(STRENGTHS)))
    found = {name: float(model.score(validation, dataset.validation.labels)) for name, model in models.items()}
    best = max(found, key=lambda name: found[name])
    return scores_on(dataset.test, "TF-IDF", models[best].predict(test), best, found)


def _counted_words(texts: Sequence[str]) -> tuple[TfidfVectorizer, Any]:
    """Words and pairs that two texts have, or, of texts that share none, those of one; with their weights."""
    failure: ValueError | None = None
    for least in (2, 1):
        vectors = TfidfVectorizer(ngram_range=(1, 2), min_df=least, sublinear_tf=True)
        try:
            return vectors, vectors.fit_transform(texts)
        except ValueError as error:
            # So that nothing is left is reported.
            failure = error
    raise SettingsError(
        f"none of the {len(texts)} training texts has a word of two letters, so TF-IDF has no feature"
    ) from failure


def dense_baseline(dataset: TextDataset, backbone: str, asked: DenseTraining) -> BaselineScores:
    """The same encoder fine-tuned without words in between: best of a few learning rates, chosen on validation."""

    def tokens(model: DenseClassifier, split: TextSplit) -> TokenizedTexts:
        return tokenize(model.tokenizer, split.texts, asked.max_length)

    def trained(rate: float) -> DenseClassifier:
        model = DenseClassifier(backbone, len(dataset.label_names)).to(resolve_device(asked.device))
        texts, labels = tokens(model, dataset.train), torch.tensor(dataset.train.labels)

        def loss_of(rows: list[int]) -> Tensor:
            logits = _logits(model, texts.batch(rows))
            return cross_entropy(logits, labels[rows].to(logits.device))

        fine_tune(model, texts, loss_of, rate, asked)
        return model

    def accuracy(model: DenseClassifier) -> float:
        predicted = predict(model, tokens(model, dataset.validation), asked.on_step)
        return float((predicted == torch.tensor(dataset.validation.labels)).float().mean())

    model, best, found = best_of_rates(asked, trained, accuracy)
    predicted = predict(model, tokens(model, dataset.test), asked.on_step)
    return scores_on(dataset.test, "dense baseline", predicted.numpy(), best, found)


def _logits(model: DenseClassifier, batch: Batch) -> Float[Tensor, "B C"]:
    device = next(model.parameters()).device
    return model(batch.input_ids.to(device), batch.attention_mask.to(device))


@torch.no_grad()
def predict(model: DenseClassifier, texts: TokenizedTexts, on_step: OnStep = silent) -> Int[Tensor, " T"]:
    """The class of each text."""
    model.eval()
    predicted = torch.empty(len(texts), dtype=torch.long)
    for batch in batches(texts, 64, "dense baseline, deciding", on_step):
        predicted[batch.rows] = _logits(model, batch).argmax(-1).cpu()
    return predicted


def scores_on(
    test: TextSplit, name: str, predicted: np.ndarray, setting: str, validation: dict[str, float]
) -> BaselineScores:
    """The scores of a baseline that predicted these classes for the test texts."""
    is_correct = tuple(bool(p == gold) for p, gold in zip(predicted.tolist(), test.labels, strict=True))
    found = macro_f1(np.asarray(test.labels), predicted)
    return BaselineScores(name, sum(is_correct) / len(is_correct), is_correct, setting, validation, found)


def macro_f1(labels: Int[np.ndarray, " T"], predicted: Int[np.ndarray, " T"]) -> float:
    """Mean F1 of the classes that occur, each counted the same: unlike accuracy, it sees rare classes.

    Example: labels 0 0 0 1, always predicting 0 -> (6/7 + 0) / 2 = 0.43
    """
    return float(f1_score(labels, predicted, labels=np.unique(labels), average="macro", zero_division=cast(Any, 0.0)))
