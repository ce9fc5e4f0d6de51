"""A linear classifier on sparse codes of any kind, and what it decides when features are taken away.

Words of a lexical model and features of an autoencoder are asked the same questions, so that their answers compare.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from lexical_sae.models.sparse_code import SparseCode
from lexical_sae.utils.errors import DataError

STRENGTHS = (0.1, 1.0, 10.0)
"""Inverse penalties to choose from, on every fifth of the texts that the probe is fitted on."""


@dataclass(frozen=True)
class CodeProbe:
    """Logits linear in the code: `code @ weights + bias`, class-centred."""

    weights: Float[Tensor, "V C"]
    bias: Float[Tensor, " C"]

    def logits(self, code: SparseCode) -> Float[Tensor, "B C"]:
        """Of each text."""
        return code.weighted_sum(self.weights) + self.bias

    def logits_without(self, code: SparseCode, gone: Bool[Tensor, " K"]) -> Float[Tensor, "B C"]:
        """Of each text when some of its features are zeroed; exact, for the probe is linear."""
        said = code.values[gone, None].to(self.weights.dtype) * self.weights[code.ids[gone]]
        return self.logits(code).index_add(0, code.rows[gone], said, alpha=-1)

    def contributes_to(self, code: SparseCode, classes: Int[Tensor, " B"]) -> Float[Tensor, " K"]:
        """Contribution of every active feature to one class of its text."""
        return code.values.to(self.weights.dtype) * self.weights[code.ids, classes[code.rows]]


def fit_probe(code: SparseCode, labels: Int[Tensor, " N"], num_classes: int) -> CodeProbe:
    """Logistic regression on features scaled by their greatest activation; a fifth of the texts chooses its penalty.

    A class that no text has is never chosen.
    """
    known = labels.unique()
    if len(known) < 2:
        raise DataError(f"a probe needs texts of two classes or more, got only class {known.tolist()}")
    greatest = torch.from_numpy(abs(code_matrix(code)).max(axis=0).toarray().ravel())
    scale = greatest.where(greatest > 0, 1.0)
    features = code_matrix(replace(code, values=code.values.double() / scale[code.ids]))
    given = labels.numpy()
    # At random: every fifth text of a file may be of one class.
    chooses = np.random.default_rng(0).permutation(len(given)) % 5 == 0

    def worth(activation: float) -> float:
        return float(
            _regression(activation, features[~chooses], given[~chooses]).score(features[chooses], given[chooses])
        )

    can_choose = len(set(given[~chooses])) == len(known) and chooses.any()
    best = max(STRENGTHS, key=worth) if can_choose else 1.0
    fitted = _regression(best, features, given)
    rows, biases = np.asarray(fitted.coef_), np.asarray(fitted.intercept_)
    if len(rows) == 1:
        rows, biases = np.concatenate([-rows, rows]) / 2, np.concatenate([-biases, biases]) / 2
    weights = torch.zeros(code.size, num_classes, dtype=torch.float64)
    bias = torch.full((num_classes,), -torch.inf, dtype=torch.float64)
    weights[:, known] = torch.from_numpy(rows - rows.mean(0)).T / scale[:, None]
    bias[known] = torch.from_numpy(biases - biases.mean())
    return CodeProbe(weights, bias)


def _regression(activation: float, features: Any, labels: np.ndarray) -> LogisticRegression:
    return LogisticRegression(C=activation, max_iter=1000).fit(features, labels)


def code_matrix(code: SparseCode) -> Any:
    """The code as a `scipy.sparse.csr_array` [N, V]; `Any`, because scipy has no types that checkers could read."""
    values = code.values.double().numpy()
    return csr_array((values, code.ids.numpy(), code.offsets.numpy()), shape=(len(code), code.size))
