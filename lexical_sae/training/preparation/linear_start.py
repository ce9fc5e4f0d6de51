"""Where the auxiliary head begins: at the regression on the mean states of the encoder as it was published.

On a few thousand texts a frozen encoder with a regression may be ahead of any table of words, and a head that starts
at random needs most of a short run to catch up with it. Where it is ahead on texts left out, the auxiliary head starts
there, so context has a teacher from the first step.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from scipy.optimize import minimize
from torch import Tensor

from lexical_sae.outputs import OutputKind
from lexical_sae.outputs.kind import Targets
from lexical_sae.training.loss.auxiliary_head import AuxiliaryHead
from lexical_sae.training.table_choice import judged_folds

STRENGTHS = (0.001, 0.01, 0.1)
"""What the regression may choose from; the weaker its prior, the larger."""
LEAST_SPREAD = 1e-6
LIMITS = {"maxiter": 300, "maxcor": 20, "ftol": 1e-9, "gtol": 1e-6}


@dataclass(frozen=True)
class StateRegression:
    """A regression on states that were centred and scaled."""

    weights: Float[ndarray, "E C"]
    bias: Float[ndarray, " C"]
    centre: Float[ndarray, " E"]
    spread: Float[ndarray, " E"]
    quality: float
    """On texts left out; of classes, the accuracy."""

    @torch.no_grad()
    def start(self, head: AuxiliaryHead) -> None:
        """Set an auxiliary head to it."""
        parts = (head.centre, head.spread, head.layer.weight, head.layer.bias)
        for part, values in zip(parts, (self.centre, self.spread, self.weights.T, self.bias), strict=True):
            part.copy_(torch.from_numpy(values))


def regression_on_states(
    states: Float[Tensor, "T E"],
    targets: Targets,
    folds: Int[Tensor, " T"],
    output: OutputKind,
    outputs: int,
    weights: Float[Tensor, " T"] | None = None,
) -> StateRegression:
    """The regression of the targets on these states, its prior chosen on texts left out."""
    X, Y = states.double().cpu().numpy(), targets.cpu().numpy()
    counts = np.ones(len(Y)) if weights is None else weights.double().cpu().numpy()
    centre, spread = X.mean(0), X.std(0) + LEAST_SPREAD
    X = (X - centre) / spread

    def fitted(strength: float, rows: Bool[ndarray, " T"]) -> tuple[ndarray, ndarray]:
        texts, labels, shares = X[rows], Y[rows], counts[rows] / counts[rows].sum()
        held = 1 / (2 * strength * len(labels))

        def loss(flat: ndarray) -> tuple[float, ndarray]:
            W, bias = flat[outputs:].reshape(-1, outputs), flat[:outputs]
            value, pull = output.table_loss(texts @ W + bias, labels, shares)
            value += held * np.square(W).sum()
            return float(value), np.concatenate([pull.sum(0), (texts.T @ pull + 2 * held * W).ravel()])

        start = np.zeros(outputs * (X.shape[1] + 1))
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options=LIMITS).x
        return found[outputs:].reshape(-1, outputs), found[:outputs]

    judged = judged_folds(folds)
    rows = torch.cat(judged).numpy()

    def left_out_logits(strength: float) -> Float[ndarray, "R C"]:
        logits = np.zeros((len(Y), outputs))
        for part in judged:
            kept = np.ones(len(Y), dtype=bool)
            kept[part.numpy()] = False
            W, bias = fitted(strength, kept)
            logits[part.numpy()] = X[part.numpy()] @ W + bias
        return logits[rows]

    tried = {strength: left_out_logits(strength) for strength in STRENGTHS}
    share = counts[rows] / counts[rows].sum()
    best = min(tried, key=lambda strength: float((share * output.text_losses(tried[strength], Y[rows])).sum()))
    quality = output.quality(torch.from_numpy(tried[best]), targets.cpu()[rows]).double().numpy()
    W, bias = fitted(best, np.ones(len(Y), dtype=bool))
    return StateRegression(W, bias, centre, spread, float((share * quality).sum()))
