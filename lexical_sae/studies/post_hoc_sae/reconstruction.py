"""Reconstruction of a text's hidden state from its words, by ridge regression."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lexical_sae.data.sampling import sample_rows
from lexical_sae.evaluation.code_probe import code_matrix
from lexical_sae.models.sparse_code import SparseCode

PENALTIES = (0.1, 1.0, 10.0, 100.0)
"""Ridge penalties to choose from, by the error on a fifth of the texts for fitting."""
FITTED_AT_MOST = 5000
"""Maximum number of texts for fitting: memory grows with their square, to 200 MB per matrix here."""


def rebuild_from_words(
    fit: SparseCode, states: Float[Tensor, "N E"], held: SparseCode
) -> tuple[Float[Tensor, "M E"], float]:
    """Hidden states of held-out texts from their words, and the chosen ridge penalty.

    A lexical model has no decoder to its states; ridge regression, fitted on other texts, is the best linear one.
    Solved among texts, not words: `s_held s_fit' (s_fit s_fit' + penalty)^-1 (states - mean) + mean`,
    with words centred too, so that the intercept is free.
    """
    chosen = sample_rows(len(fit), FITTED_AT_MOST, seed=0)
    words, target = code_matrix(fit)[chosen], states[chosen].double().numpy()
    kernel, cross = ((code @ words.T).toarray() for code in (words, code_matrix(held)))
    # At random: every fifth text of a file may be of one class.
    chooses = np.random.default_rng(0).permutation(len(target)) % 5 == 0

    def ridge(rows: np.ndarray, products: np.ndarray, penalty: float) -> np.ndarray:
        """Fitted on some rows, the predicted states of texts with these products with the rows."""
        own, mean = kernel[np.ix_(rows, rows)], target[rows].mean(0)
        square = _centered(own, own) + penalty * np.eye(len(rows))
        return _centered(products, own) @ np.linalg.solve(square, target[rows] - mean) + mean

    def error(penalty: float) -> float:
        rows, others = np.flatnonzero(~chooses), np.flatnonzero(chooses)
        return float(np.square(ridge(rows, kernel[np.ix_(others, rows)], penalty) - target[others]).sum())

    best = min(PENALTIES, key=error) if len(target) > 5 else PENALTIES[-1]
    return torch.from_numpy(ridge(np.arange(len(target)), cross, best)).to(states.dtype), best


def _centered(products: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Products with the fitted texts, after centring both sides by the fitted mean."""
    return products - products.mean(1, keepdims=True) - own.mean(0) + own.mean()
