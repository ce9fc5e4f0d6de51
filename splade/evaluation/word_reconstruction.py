"""How much of a text's hidden state its words still hold, read by the best linear decoder."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from splade.circuits.sparse_code import SparseCode
from splade.data.lots import rows_by_lot
from splade.evaluation.code_probe import code_matrix

PENALTIES = (0.1, 1.0, 10.0, 100.0)
"""Ridge penalties to choose from, on a fifth of the texts for fitting."""
FITTED_AT_MOST = 5000
"""Texts for fitting, drawn by lot from more: memory grows with their square, to 200 MB a matrix here, time faster."""


def rebuild_from_words(
    fit: SparseCode, states: Float[Tensor, "N E"], held: SparseCode
) -> tuple[Float[Tensor, "M E"], float]:
    """Hidden states of held-out texts from their words, and the ridge penalty that was chosen.

    A lexical model has no way back to its states; ridge regression from words to states, fitted on other texts, is the
    best linear one. Solved among texts, not words: `s_held s_fit' (s_fit s_fit' + penalty)^-1 (states - mean) + mean`,
    words counted from their means too, so that the intercept is free.
    """
    drawn = rows_by_lot(len(fit), FITTED_AT_MOST, seed=0)
    words, target = code_matrix(fit)[drawn], states[drawn].double().numpy()
    kernel, cross = ((code @ words.T).toarray() for code in (words, code_matrix(held)))
    # By lot: every fifth text of a file may be of one class.
    chooses = np.random.default_rng(0).permutation(len(target)) % 5 == 0

    def ridge(rows: np.ndarray, asked: np.ndarray, penalty: float) -> np.ndarray:
        """Fitted on some rows, the states of texts whose products with those rows are asked about."""
        own, mean = kernel[np.ix_(rows, rows)], target[rows].mean(0)
        square = _centred(own, own) + penalty * np.eye(len(rows))
        return _centred(asked, own) @ np.linalg.solve(square, target[rows] - mean) + mean

    def error(penalty: float) -> float:
        rows, others = np.flatnonzero(~chooses), np.flatnonzero(chooses)
        return float(np.square(ridge(rows, kernel[np.ix_(others, rows)], penalty) - target[others]).sum())

    best = min(PENALTIES, key=error) if len(target) > 5 else PENALTIES[-1]
    return torch.from_numpy(ridge(np.arange(len(target)), cross, best)).to(states.dtype), best


def _centred(products: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Products with the fitted texts, as they are when the mean of those is taken from both sides."""
    return products - products.mean(1, keepdims=True) - own.mean(0) + own.mean()
