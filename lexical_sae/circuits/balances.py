"""Balances: from the values of the terms to one loss."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float
from pydantic import Field, PositiveFloat
from torch import Tensor, nn

from lexical_sae.circuits.losses import Scalar
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.part import PartConfig


class Balance(nn.Module, ABC):
    """How terms add up; T terms, in the order of the objective."""

    weights: Float[Tensor, " T"]

    def __init__(self, weights: Sequence[float]) -> None:
        super().__init__()
        # Settings, not state: a checkpoint must not bring back old ones.
        self.register_buffer("weights", torch.tensor(weights, dtype=torch.float32), persistent=False)

    @abstractmethod
    def forward(self, values: Float[Tensor, " T"]) -> Scalar:
        """The loss to minimise."""


class Sum(Balance):
    """All terms alike."""

    class Config(PartConfig):
        kind: Literal["sum"] = "sum"

        def build(self, weights: Sequence[float]) -> "Sum":
            if any(weight != 1 for weight in weights):
                raise SettingsError(f"balance 'sum' takes no weights, got {list(weights)}; use balance 'weighted'")
            return Sum(weights)

    def forward(self, values: Float[Tensor, " T"]) -> Scalar:
        return values.sum()


class Weighted(Balance):
    """Each term times its weight."""

    class Config(PartConfig):
        kind: Literal["weighted"] = "weighted"

        def build(self, weights: Sequence[float]) -> "Weighted":
            return Weighted(weights)

    def forward(self, values: Float[Tensor, " T"]) -> Scalar:
        return (self.weights * values).sum()


class RunningMean(Balance):
    """Each term times its weight, over the moving average of its magnitude: all start out about equally large.

    The average moves in training mode only. It has a positive floor: a term that is nearly zero would otherwise be
    blown up without bound.
    """

    average: Float[Tensor, " T"]
    is_known: Bool[Tensor, ""]

    class Config(PartConfig):
        kind: Literal["running_mean"] = "running_mean"
        decay: float = Field(default=0.99, ge=0, lt=1)
        """Share of the average that is kept at each step."""
        floor: PositiveFloat = 0.01
        """The average counts as at least this, so no term is multiplied by more than its inverse."""

        def build(self, weights: Sequence[float]) -> "RunningMean":
            return RunningMean(self, weights)

    def __init__(self, config: Config, weights: Sequence[float]) -> None:
        super().__init__(weights)
        self.config = config
        self.register_buffer("average", torch.zeros(len(weights)))
        self.register_buffer("is_known", torch.tensor(False))

    def forward(self, values: Float[Tensor, " T"]) -> Scalar:
        size = values.detach().abs()
        average = torch.where(self.is_known, self.average, size)
        if self.training:
            # The first value is copied.
            average = torch.lerp(size, average, self.config.decay)
            self.average.copy_(average)
            self.is_known.fill_(True)
        return (self.weights * values / average.clamp(min=self.config.floor)).sum()


class Uncertainty(Balance):
    """`exp(-v)/2 * loss + v/2` with v learned per term, within bounds: free, it would fall for ever as a loss vanishes.

    v is `limit * tanh(raw / limit)` and not clamped, so that it can always come back.
    """

    REFERENCE: ClassVar = "Kendall et al. 2018, arXiv:1705.07115"

    class Config(PartConfig):
        kind: Literal["uncertainty"] = "uncertainty"
        limit: PositiveFloat = 4.0
        """v stays between minus and plus this; a term is multiplied by at most half of exp(limit)."""

        def build(self, weights: Sequence[float]) -> "Uncertainty":
            return Uncertainty(self, weights)

    def __init__(self, config: Config, weights: Sequence[float]) -> None:
        super().__init__(weights)
        self.limit = config.limit
        self.raw_log_variance = nn.Parameter(torch.zeros(len(weights)))

    def log_variance(self) -> Float[Tensor, " T"]:
        """v of each term."""
        return self.limit * (self.raw_log_variance / self.limit).tanh()

    def forward(self, values: Float[Tensor, " T"]) -> Scalar:
        v = self.log_variance()
        return ((-v).exp() * self.weights * values + v).sum() / 2
