"""How strongly a table of words is held back, chosen by cross-validation on its training texts.

Folds are left out in turn until enough texts were judged: all five where texts are few, one where there are thousands.
Every choice is judged by its loss (of classes, the cross-entropy) at the temperature that suits it: one that is held
back strongly is not sure of itself, and yet may order the labels best.

Strong choices are for few texts and a table that stays alone. Where context is to be learned rows must keep their size:
the rows of a strongly held table are so small that no word may shift (`ContextShift.Config.eligible_from`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lexical_sae.outputs import CLASSES, OutputKind
from lexical_sae.outputs.kind import Targets
from lexical_sae.training.folds import FOLDS
from lexical_sae.training.temperature import fitted_temperature


class Penalties(NamedTuple):
    """On the squares of own weights and of the shared projection, beside the mean cross-entropy."""

    own: float
    shared: float
    is_even: bool = False
    """Whether both are divided by the number of texts, and the projection is penalised as if every column of the texts'
    vectors had the same spread. Otherwise columns of small spread, which tell less, are held back more."""


LENIENT = tuple(Penalties(*pair) for pair in ((3e-5, 3e-5), (1e-4, 1e-4), (1e-4, 3e-4), (3e-4, 3e-4)))
EVEN = tuple(Penalties(*pair, True) for pair in ((5, 500), (5, 150), (5, 50), (5, 15), (1.5, 15), (1.5, 5), (0.5, 5)))
FEW_TEXTS = 5000
"""With fewer, a table that stays alone may be held back strongly."""
VERY_FEW_TEXTS = 1000
"""With fewer, it always is: a lenient choice would be the best one only by chance."""
JUDGED_TEXTS = 1000

LeftOut = Callable[[Penalties, Int[Tensor, " R"]], Float[Tensor, "R C"]]
"""The logits of these texts, of a table fitted without them."""


@dataclass(frozen=True)
class Choice:
    """What was chosen, and what texts that were left out say of it."""

    penalties: Penalties
    loss: float
    """Of classes, the cross-entropy at the temperature that suits it."""
    accuracy: float
    texts: int
    """How many were judged."""


def is_held_strongly(texts: int, *, with_context: bool) -> bool:
    """Whether a table of so many texts may be: of few, and where it stays alone."""
    return not with_context and texts < FEW_TEXTS


def candidates(texts: int, *, with_context: bool) -> tuple[Penalties, ...]:
    """What a table of so many texts chooses from."""
    if not is_held_strongly(texts, with_context=with_context):
        return LENIENT
    return EVEN if texts < VERY_FEW_TEXTS else EVEN + LENIENT


def chosen_penalties(
    offered: Sequence[Penalties],
    logits_of: LeftOut,
    labels: Targets,
    folds: Int[Tensor, " T"],
    weights: Float[Tensor, " T"] | None,
    told: Callable[[], object],
    output: OutputKind = CLASSES,
) -> Choice:
    """The best of those offered; `told` is called after each fit."""
    judged = judged_folds(folds)
    found: list[Choice] = []
    for penalties in offered:
        logits, rows = [], []
        for left_out in judged:
            logits.append(logits_of(penalties, left_out))
            rows.append(left_out)
            told()
        found.append(_judged(penalties, torch.cat(logits), torch.cat(rows), labels, weights, output))
    return min(found, key=lambda choice: choice.loss)


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
    labels: Targets,
    weights: Float[Tensor, " T"] | None,
    output: OutputKind,
) -> Choice:
    true = labels[rows].cpu()
    temperature = fitted_temperature(logits, true, output)
    losses = torch.from_numpy(output.text_losses((logits / temperature).numpy(), true.numpy()))
    counts = torch.ones_like(losses) if weights is None else weights[rows].to(losses)
    quality = output.quality(logits, true).to(losses)
    return Choice(
        penalties,
        float((counts * losses).sum() / counts.sum()),
        float((counts * quality).sum() / counts.sum()),
        len(rows),
    )
