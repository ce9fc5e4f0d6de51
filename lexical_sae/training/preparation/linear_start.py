"""Where the auxiliary head begins: at the regression on the mean states of the encoder as it was published.

On a few thousand texts a frozen encoder with a regression is a strong classifier, and one that starts at random needs
most of a short run to catch up with it. The auxiliary head starts there, so context has a teacher from the first step.
"""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.optimize import minimize
from torch import Tensor

from lexical_sae.outputs import OutputKind
from lexical_sae.outputs.kind import Targets
from lexical_sae.training.loss.auxiliary_head import AuxiliaryHead
from lexical_sae.training.table_choice import judged_folds

STRENGTHS = (0.001, 0.01, 0.1)
"""What the regression may choose from; the weaker its prior, the larger."""
LEAST_SPREAD = 1e-6


@torch.no_grad()
def start_at_regression(
    head: AuxiliaryHead,
    states: Float[Tensor, "T E"],
    targets: Targets,
    folds: Int[Tensor, " T"],
    output: OutputKind,
    weights: Float[Tensor, " T"] | None = None,
) -> None:
    """Set the auxiliary head to the regression of the targets on these states, its prior chosen on texts left out."""
    X, Y = states.double().cpu().numpy(), targets.cpu().numpy()
    counts = np.ones(len(Y)) if weights is None else weights.double().cpu().numpy()
    centre, spread = X.mean(0), X.std(0) + LEAST_SPREAD
    X = (X - centre) / spread
    outputs = head.layer.out_features

    def fitted(strength: float, rows: Bool[np.ndarray, " T"]) -> tuple[np.ndarray, np.ndarray]:
        texts, labels, shares = X[rows], Y[rows], counts[rows] / counts[rows].sum()

        def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
            W, bias = flat[outputs:].reshape(-1, outputs), flat[:outputs]
            value, pull = output.table_loss(texts @ W + bias, labels, shares)
            held = 1 / (2 * strength * len(labels))
            value += held * np.square(W).sum()
            return float(value), np.concatenate([pull.sum(0), (texts.T @ pull + 2 * held * W).ravel()])

        start = np.zeros(outputs * (X.shape[1] + 1))
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 200, "ftol": 1e-7})
        return found.x[outputs:].reshape(-1, outputs), found.x[:outputs]

    def left_out_loss(strength: float) -> float:
        found = 0.0
        for rows in judged_folds(folds):
            left_out = np.zeros(len(Y), dtype=bool)
            left_out[rows.numpy()] = True
            W, bias = fitted(strength, ~left_out)
            found += float((counts[left_out] * output.text_losses(X[left_out] @ W + bias, Y[left_out])).sum())
        return found

    W, bias = fitted(min(STRENGTHS, key=left_out_loss), np.ones(len(Y), dtype=bool))
    for part, values in (
        (head.centre, centre),
        (head.spread, spread),
        (head.layer.weight, W.T),
        (head.layer.bias, bias),
    ):
        part.copy_(torch.from_numpy(values))
