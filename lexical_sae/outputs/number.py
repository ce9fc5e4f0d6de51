"""A number per text: one logit, and the number is `centre + spread * logit`.

Centre and spread are the mean and the standard deviation of the training numbers, so that a logit is worth as much in
a table of stars as in one of prices, and every setting in logits keeps its meaning. The loss is half the squared error
in these units. What is explained is the number itself: contributions times the spread, and the centre in the bias.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from pydantic import PositiveFloat
from torch import Tensor

from lexical_sae.outputs.figures import Measure, TaskScores, number_measure, number_scores
from lexical_sae.outputs.kind import Logits, Scalar, Scored, Shares, as_doubles, mean_of, weighted, weighted_mean
from lexical_sae.utils.errors import DataError, SettingsError


class Number(Scored):
    """Every text has a number."""

    kind: Literal["number"] = "number"
    centre: float = 0.0
    """Mean of the training numbers."""
    spread: PositiveFloat = 1.0
    """Their standard deviation."""
    title: ClassVar = "a number per text"
    least_names: ClassVar = 1
    is_choice: ClassVar = False
    logit_unit: ClassVar = ""
    better: ClassVar = "nearer to the numbers of validation texts"
    keys: ClassVar = ("mae", "rmse", "spearman")

    def fitted(self, labels: Sequence[Any]) -> "Number":
        numbers = np.asarray(labels, dtype=np.float64)
        centre, spread = float(numbers.mean()), float(numbers.std())
        # Equal numbers may leave a spread of rounding alone.
        if not math.isfinite(spread) or spread <= 1e-12 * max(1.0, abs(centre)):
            raise DataError(f"all {len(numbers)} training texts have the number {centre:g}; there is nothing to learn")
        return self.model_copy(update={"centre": centre, "spread": spread})

    def targets(self, labels: Sequence[Any]) -> Float[Tensor, " N"]:
        return ((torch.tensor(labels, dtype=torch.float64) - self.centre) / self.spread).float()

    def numbers(self, logits: Logits) -> Float[Tensor, " N"]:
        """The number of each text, in double precision."""
        # The same product as that which is explained, so that both are the same number.
        return self.centre + (self.spread * logits[:, 0]).double()

    def loss(
        self,
        logits: Logits,
        targets: Float[Tensor, " N"],
        weights: Float[Tensor, " N"] | None = None,
        smoothing: float = 0.0,
    ) -> Scalar:
        del smoothing
        return weighted_mean((logits[:, 0] - targets.to(logits.dtype)).square() / 2, weights)

    def imitation(self, teacher: Logits, pupil: Logits, weights: Float[Tensor, " N"] | None = None) -> Scalar:
        return self.loss(pupil, teacher.detach()[:, 0], weights)

    def quality(self, logits: Logits, targets: Float[Tensor, " N"]) -> Float[Tensor, " N"]:
        """Minus the squared error, in variances of the training numbers."""
        return -(logits[:, 0] - targets).square()

    def statistics(
        self, targets: Float[Tensor, " N"], weights: Float[Tensor, " N"] | None, outputs: int
    ) -> Float[Tensor, " S"]:
        """How many samples there are, the sum of their numbers, and that of the squares."""
        del outputs
        counts = torch.ones_like(targets) if weights is None else weights
        return torch.stack([counts.sum(), (counts * targets).sum(), (counts * targets.square()).sum()])

    def guessing_loss(self, statistics: Float[Tensor, " S"], smoothing: float = 0.0) -> float:
        del smoothing
        total, first, second = statistics.tolist()
        return (second - first**2 / total) / 2 if total else 0.0

    def text_losses(self, logits: Float[ndarray, "N C"], targets: Float[ndarray, " N"]) -> Float[ndarray, " N"]:
        return np.square(logits[:, 0] - targets) / 2

    def table_loss(
        self, logits: Float[ndarray, "N C"], targets: Float[ndarray, " N"], shares: Shares
    ) -> tuple[float, Float[ndarray, "N C"]]:
        return mean_of(self.text_losses(logits, targets), shares), weighted(logits - targets[:, None], shares)

    def probabilities(self, logits: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch C"]:
        del logits
        raise SettingsError("this model predicts a number, which has no probability; ask for the number (predict)")

    def decided(self, logits: Logits, names: Sequence[str]) -> list[float]:
        del names
        return self.numbers(logits).tolist()

    def written(self, decision: float) -> str:
        """Example: 3.14159 -> "3.14"; 123456.7 -> "123,457" """
        digits = max(0, 2 - math.floor(math.log10(self.spread)))
        return f"{decision:,.{digits}f}"

    def labelled(self, labels: Sequence[Any], names: Sequence[str]) -> list[str]:
        del names
        return [self.written(float(label)) for label in labels]

    def told(self, probabilities: Sequence[float], target: int) -> None:
        del probabilities, target

    def confidence(self, target: str, probability: float | None, probabilities: Sequence[tuple[str, float]]) -> str:
        """The name of the number, for it has no probability."""
        del probability, probabilities
        return target

    def default_target(self, logits: Logits, without: int | None) -> Int[Tensor, " N"]:
        assert without is None, "a number is not contrasted"
        return torch.zeros_like(logits[:, 0], dtype=torch.long)

    def direction(self, logits: Logits, targets: Int[Tensor, " N"]) -> Logits:
        del targets
        return torch.full_like(logits, self.spread)

    def offset(self) -> float:
        return self.centre

    def sides(self, names: Sequence[str]) -> list[tuple[str, int, int]]:
        return [(f"more {names[0]}", 0, 1), (f"less {names[0]}", 0, -1)]

    def weights(self, rows: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch C"]:
        return self.spread * rows

    def figures(self, logits: Logits, labels: Sequence[Any], names: Sequence[str]) -> TaskScores:
        del names
        return number_scores(as_doubles(self.numbers(logits)), np.asarray(labels, dtype=np.float64), self.centre)

    def measure(self, logits: Logits, labels: Sequence[Any]) -> Measure:
        return number_measure(as_doubles(self.numbers(logits)), np.asarray(labels, dtype=np.float64))
