"""How a baseline does, text by text."""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from jaxtyping import Int
from sklearn.metrics import f1_score

from lexical_sae.data import TextSplit


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
