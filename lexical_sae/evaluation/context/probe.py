"""One fixed estimator for how well the label can be told from a table of sparse columns.

Logistic regression with one penalty, five-fold cross-validated: every text is judged by a probe that has not seen it.
Its cross-entropy bounds the information from below: I(columns; label) >= H(label) - cross-entropy, and it is never
less than zero. Two tables are compared with the same folds, so most of the bound's slack cancels.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

FOLDS = 5
PENALTY = 0.3
"""Inverse strength of the ridge penalty."""


@dataclass(frozen=True)
class Probed:
    """What the probe makes of each text."""

    is_right: Bool[ndarray, " T"]
    bits: Float[ndarray, " T"]
    """-log2 of the probability it gives the label."""


def cross_validated(columns: Any, labels: Int[ndarray, " T"], seed: int) -> Probed:
    """Predictions for every text from a probe fitted on the other folds; folds have the classes in equal parts."""
    num_classes = int(labels.max()) + 1
    folds = _folds(labels, seed)
    is_right, bits = np.zeros(len(labels), dtype=bool), np.zeros(len(labels))
    for fold in range(FOLDS):
        held, fitted = folds == fold, folds != fold
        if not held.any():
            continue
        probabilities = _fit_predict(columns[fitted], labels[fitted], columns[held], num_classes)
        is_right[held] = probabilities.argmax(1) == labels[held]
        bits[held] = -np.log2(probabilities[np.arange(held.sum()), labels[held]])
    return Probed(is_right, bits)


def label_bits(labels: Int[ndarray, " T"]) -> Float[ndarray, " T"]:
    """-log2 of each label's frequency; their mean is the label entropy."""
    return -np.log2(np.bincount(labels)[labels] / len(labels))


def sparse_table(rows: list[dict[Any, float]]) -> Any:
    """A `scipy.sparse.csr_array` with a column per key."""
    keys = {key: i for i, key in enumerate(dict.fromkeys(key for row in rows for key in row))}
    starts = np.cumsum([0, *(len(row) for row in rows)])
    places = np.fromiter((keys[key] for row in rows for key in row), dtype=np.int64, count=starts[-1])
    values = np.fromiter((value for row in rows for value in row.values()), dtype=float, count=starts[-1])
    return csr_array((values, places, starts), shape=(len(rows), max(1, len(keys))))


def _folds(labels: Int[ndarray, " T"], seed: int) -> Int[ndarray, " T"]:
    random, folds = np.random.default_rng(seed), np.zeros(len(labels), dtype=np.int64)
    start = 0
    for label in np.unique(labels):
        rows = random.permutation(np.flatnonzero(labels == label))
        # Go on counting where the last class stopped: the folds stay of one size with many small classes.
        folds[rows] = (start + np.arange(len(rows))) % FOLDS
        start += len(rows)
    return folds


def _fit_predict(columns: Any, labels: Int[ndarray, " F"], held: Any, num_classes: int) -> Float[ndarray, "T C"]:
    """Probabilities of every class; one that the fitted texts lack gets as much as half a text would give it."""
    known, counts = np.unique(labels, return_counts=True)
    found = np.zeros((held.shape[0], num_classes))
    if len(known) > 1 and columns.nnz:
        found[:, known] = LogisticRegression(C=PENALTY, max_iter=1000).fit(columns, labels).predict_proba(held)
    elif len(known):
        found[:, known] = counts / counts.sum()
    floor = 0.5 / (len(labels) + 1)
    return (found + floor / num_classes) / (found + floor / num_classes).sum(1, keepdims=True)
