"""One temperature for some logits: what to divide them by so that their probabilities are the most likely ones."""

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize_scalar
from torch import Tensor

from lexical_sae.outputs import CLASSES, OutputKind
from lexical_sae.outputs.kind import Targets

TEMPERATURE_SPREAD = 0.5
"""Standard deviation of the prior of a temperature's logarithm, around 0."""
MOST_LOG_TEMPERATURE = 4.0


def fitted_temperature(logits: Float[Tensor, "T C"], labels: Targets, output: OutputKind = CLASSES) -> float:
    """The number to divide logits by so that their probabilities make these labels most likely.

    A prior holds it near 1 where texts are few: those that are all right would ask for certainty.

    Example: logits three times too large -> about 3
    """
    logits = logits.double()
    if output.surprise(logits, labels) is None:
        # A number has no probability.
        return 1.0

    def cost(log_temperature: float) -> float:
        surprise = output.surprise(logits / np.exp(log_temperature), labels)
        assert surprise is not None
        return float(surprise) + 0.5 * (log_temperature / TEMPERATURE_SPREAD) ** 2

    found: Any = minimize_scalar(cost, bounds=(-MOST_LOG_TEMPERATURE, MOST_LOG_TEMPERATURE), method="bounded")
    return float(np.exp(found.x))
