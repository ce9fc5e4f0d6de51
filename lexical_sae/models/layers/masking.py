"""Random word masking: words zeroed at random in training, so that removing words later is nothing new to the head."""

from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from pydantic import Field, model_validator
from torch import Tensor, nn

from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.part import PartConfig


class WordMasking(nn.Module):
    """In training, zeroes each active word with a probability drawn per document from `[low, high]`."""

    REFERENCE: ClassVar = "Madsen et al. 2023, arXiv:2310.07819"

    class Config(PartConfig):
        kind: Literal["words"] = "words"
        low: float = Field(default=0.1, ge=0, le=1)
        """Smallest share of a text's active words that is zeroed in a training step."""
        high: float = Field(default=0.3, ge=0, le=1)
        """Largest share."""

        @model_validator(mode="after")
        def _in_order(self) -> "WordMasking.Config":
            if self.low > self.high:
                raise SettingsError(f"masking.low {self.low} is above masking.high {self.high}; swap them")
            return self

        def build(self) -> "WordMasking":
            return WordMasking(self)

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.low, self.high = config.low, config.high

    def forward(self, sparse_vector: Float[Tensor, "*batch V"]) -> Float[Tensor, "*batch V"]:
        if not self.training:
            return sparse_vector
        shape = (*sparse_vector.shape[:-1], 1)
        rate = torch.empty(shape, device=sparse_vector.device).uniform_(self.low, self.high)
        return sparse_vector * (torch.rand_like(sparse_vector) >= rate)
