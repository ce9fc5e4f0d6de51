"""How strongly a table of words is held back, chosen by cross-validation on its training texts.

Folds are left out in turn until enough texts were judged: all five where texts are few, one where there are thousands.
Every choice is judged by its cross-entropy at the temperature that suits it, so that only what it says of the order of
the labels counts. Then the table's logits are divided by that temperature: a table that is held back strongly is as
sure as it has reason to be, and "0.25 logits" means the same whatever the size of the data.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lexical_sae.training.folds import FOLDS
from lexical_sae.training.temperature import fitted_temperature

Penalties = tuple[float, float]
"""Of own weights, and of the shared projection: each is divided by the number of texts."""
PENALTIES: tuple[Penalties, ...] = ((5, 500), (5, 150), (5, 50), (5, 15), (1.5, 15), (1.5, 5), (0.5, 5), (0.5, 1.5))
"""What to choose from; few texts want the first, many the last."""
JUDGED_TEXTS = 1000

LeftOut = Callable[[Penalties, Int[Tensor, " R"]], Float[Tensor, "R C"]]
"""The logits of these texts, of a table fitted without them."""


@dataclass(frozen=True)
class Choice:
    """What was chosen, and what texts that were left out say of it."""

    penalties: Penalties
    temperature: float
    """What to divide logits by."""
    cross_entropy: float
    accuracy: float
    texts: int
    """How many were judged."""


def chosen_penalties(
    logits_of: LeftOut,
    labels: Int[Tensor, " T"],
    folds: Int[Tensor, " T"],
    weights: Float[Tensor, " T"] | None,
    told: Callable[[], object],
) -> Choice:
    """The best of `PENALTIES`; `told` is called after each fit."""
    judged = judged_folds(folds)
    found: list[Choice] = []
    for penalties in PENALTIES:
        logits, rows = [], []
        for left_out in judged:
            logits.append(logits_of(penalties, left_out))
            rows.append(left_out)
            told()
        found.append(_judged(penalties, torch.cat(logits), torch.cat(rows), labels, weights))
    return min(found, key=lambda choice: choice.cross_entropy)


def judged_folds(folds: Int[Tensor, " T"]) -> list[Int[Tensor, " R"]]:
    """The rows of as many folds as it takes to judge `JUDGED_TEXTS`, or of all."""
    parts = [(folds == k).nonzero().flatten() for k in range(FOLDS)]
    parts = [rows for rows in parts if len(rows)]
    sizes = np.cumsum([len(rows) for rows in parts])
    return parts[: int(np.searchsorted(sizes, JUDGED_TEXTS)) + 1]


def _judged(
    penalties: Penalties,
    logits: Float[Tensor, "R C"],
    rows: Int[Tensor, " R"],
    labels: Int[Tensor, " T"],
    weights: Float[Tensor, " T"] | None,
) -> Choice:
    true = labels[rows].cpu()
    temperature = fitted_temperature(logits, true)
    losses = torch.nn.functional.cross_entropy(logits / temperature, true, reduction="none")
    counts = torch.ones_like(losses) if weights is None else weights[rows].to(losses)
    is_right = (logits.argmax(-1) == true).to(losses)
    return Choice(
        penalties,
        temperature,
        float((counts * losses).sum() / counts.sum()),
        float((counts * is_right).sum() / counts.sum()),
        len(rows),
    )
