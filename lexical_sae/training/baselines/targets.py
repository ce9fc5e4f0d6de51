"""What a user would fit instead where texts have any number of labels, or a number: linear models on the same rows.

    TF-IDF           words and word pairs, weighted by rarity
    frozen encoder   the mean states of the encoder as it was published, each column scaled

Labels: one logistic regression per label (one against the rest); numbers: a ridge regression. The strength of the prior
is chosen on validation texts by the loss, and thresholds as for the model: by the best F1 there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from sklearn.linear_model import LogisticRegression, Ridge
from torch import Tensor

from lexical_sae.data import TextDataset
from lexical_sae.outputs import OUTPUTS, Labels, Number, Scored
from lexical_sae.training.baselines.frozen import NAME, FrozenEncoder
from lexical_sae.training.baselines.tfidf import counted_words
from lexical_sae.utils.progress import OnStep, Step, silent

Columns = Any
"""A matrix, sparse or dense, with a row per text."""


@dataclass(frozen=True)
class TargetBaseline:
    """A fitted baseline on the test texts."""

    name: str
    setting: str
    output: Scored
    """The output kind with the baseline's own thresholds."""
    logits: Float[Tensor, "T C"]
    """Of the test texts."""


def tfidf_targets(dataset: TextDataset, on_step: OnStep = silent) -> TargetBaseline:
    """TF-IDF of words and word pairs into linear models."""
    vectors, train = counted_words(dataset.train.texts)
    others = [vectors.transform(split.texts) for split in (dataset.validation, dataset.test)]
    return _best(dataset, "TF-IDF", train, others, TFIDF_STRENGTHS[dataset.output], on_step)


def frozen_targets(dataset: TextDataset, encoder: FrozenEncoder, on_step: OnStep = silent) -> TargetBaseline:
    """Mean states of an encoder that is not trained into linear models."""
    states = encoder.states((dataset.train, dataset.validation, dataset.test), on_step)
    centre, scale = states[0].mean(0), states[0].std(0) + 1e-6
    train, *others = ((part - centre) / scale for part in states)
    return _best(dataset, NAME, train, others, FROZEN_STRENGTHS[dataset.output], on_step)


def _best(
    dataset: TextDataset,
    name: str,
    train: Columns,
    others: Sequence[Columns],
    strengths: Sequence[float],
    on_step: OnStep,
) -> TargetBaseline:
    """The strength with the least loss on validation texts."""
    output = OUTPUTS[dataset.output].fitted(dataset.train.labels)
    assert isinstance(output, Scored), "classes have baselines of their own"
    targets, held = (output.targets(split.labels).double().numpy() for split in (dataset.train, dataset.validation))
    fit, found = FITS[output.kind], []
    for done, strength in enumerate(strengths):
        validation, test = fit(train, targets, strength, others)
        found.append((float(output.text_losses(validation, held).mean()), strength, validation, test))
        on_step(Step(f"{name}, fitting", done + 1, len(strengths)))
    _, strength, validation, test = min(found, key=lambda one: one[0])
    tuned = output.tuned(lambda: torch.from_numpy(validation), dataset.validation.labels)
    return TargetBaseline(name, f"{SETTINGS[output.kind]}={strength:g}", tuned, torch.from_numpy(test))


def _one_against_rest(train: Columns, targets: ndarray, strength: float, others: Sequence[Columns]) -> list[ndarray]:
    columns = [[] for _ in others]
    for label in targets.T:
        share = np.clip(label.mean(), 0.5 / len(label), 1 - 0.5 / len(label))
        if len(np.unique(label)) < 2:
            found = [np.full(other.shape[0], np.log(share / (1 - share))) for other in others]
        else:
            model = LogisticRegression(C=strength, max_iter=2000, tol=1e-3).fit(train, label)
            found = [model.decision_function(other) for other in others]
        for column, own in zip(columns, found, strict=True):
            column.append(own)
    return [np.stack(column, axis=1) for column in columns]


def _ridge(train: Columns, targets: ndarray, strength: float, others: Sequence[Columns]) -> list[ndarray]:
    model = Ridge(alpha=strength).fit(train, targets)
    return [model.predict(other)[:, None] for other in others]


FITS: dict[str, Callable[..., list[ndarray]]] = {Labels().kind: _one_against_rest, Number().kind: _ridge}
SETTINGS = {Labels().kind: "C", Number().kind: "alpha"}
TFIDF_STRENGTHS = {Labels().kind: (1.0, 4.0, 16.0, 64.0, 256.0), Number().kind: (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)}
FROZEN_STRENGTHS = {
    Labels().kind: (1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3),
    Number().kind: (3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 3e3),
}
"""What may be chosen from: for labels, the larger the weaker the prior; for numbers, the reverse."""
