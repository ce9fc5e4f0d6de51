"""How much of a text's hidden state its words still hold, read by the best linear decoder."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from splade.circuits.sparse_code import SparseCode
from splade.evaluation.code_probe import code_matrix

PENALTIES = (0.1, 1.0, 10.0, 100.0)
"""Ridge penalties to choose from, on every fifth of the texts for fitting."""


def rebuild_from_words(
    fit: SparseCode, states: Float[Tensor, "N E"], held: SparseCode
) -> tuple[Float[Tensor, "M E"], float]:
    """Hidden states of held-out texts from their words, and the ridge penalty that was chosen.

    A lexical model has no way back to its states; ridge regression from words to states, fitted on other texts, is the
    best linear one. Solved among texts, not words: `s_held s_fit' (s_fit s_fit' + penalty)^-1 (states - mean) + mean`.
    """
    words, unseen, target = code_matrix(fit), code_matrix(held), states.double().numpy()
    mean = target.mean(0)
    kernel = (words @ words.T).toarray()
    chooses = np.arange(len(target)) % 5 == 0

    def solve(rows: np.ndarray, penalty: float) -> np.ndarray:
        square = kernel[np.ix_(rows, rows)] + penalty * np.eye(len(rows))
        return np.linalg.solve(square, target[rows] - mean)

    def error(penalty: float) -> float:
        rows, others = np.flatnonzero(~chooses), np.flatnonzero(chooses)
        found = kernel[np.ix_(others, rows)] @ solve(rows, penalty) + mean
        return float(np.square(found - target[others]).sum())

    best = min(PENALTIES, key=error) if len(target) > 5 else PENALTIES[-1]
    weights = words.T @ solve(np.arange(len(target)), best)
    return torch.from_numpy(unseen @ weights + mean).to(states.dtype), best
