"""Context may move a word's activation from its default, and only materially.

Every word has an activation of 1 by default. Context multiplies it by a factor `1 + strength * tanh(u)`, where u is
read from the encoder's state of the word, but only where the contribution moves by at least `least` logits: below
that the factor is *exactly* 1. A word whose row in the table is small (`eligible_from`) cannot shift at all, so the
label cannot hide in neutral words. It is a JumpReLU gate around a default instead of around zero.
"""

from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, PositiveFloat
from torch import Tensor, nn

from lexical_sae.utils.part import PartConfig
from lexical_sae.utils.precision import full_precision

KERNEL = 0.1
"""Width of the smooth count of shifts around the dead zone, in logits."""


class Shifts(NamedTuple):
    """What context does to each occurrence of a word."""

    factor: Float[Tensor, " N"]
    """Exactly 1 where nothing shifts."""
    is_shifted: Bool[Tensor, " N"]
    smooth_count: Float[Tensor, " N"]
    """A stand-in for `is_shifted` that has a gradient."""


class ContextShift(nn.Module):
    """The factor by which context multiplies the default activation of a word."""

    REFERENCE: ClassVar = "Rajamanoharan et al. 2024, arXiv:2407.14435"

    size: Float[Tensor, " V"]
    """The largest |row entry| of each word, in logits."""

    class Config(PartConfig):
        activation: PositiveFloat = 4.0
        """Largest change of a word's activation, as a multiple of its default: factors lie between 1 - strength and
        1 + strength."""
        least: PositiveFloat = 0.5
        """Smallest change of a contribution, in logits, that counts; anything below is exactly zero."""
        eligible_from: float = Field(default=0.25, ge=0)
        """Smallest row of a word that may shift at all, in logits: neutral words cannot."""

        def build(self, width: int, size: int) -> "ContextShift":
            return ContextShift(self, width, size)

    def __init__(self, config: Config, width: int, size: int) -> None:
        super().__init__()
        self.config = config
        self.layer = nn.Linear(width, 1)
        # No shift at first: a new model is its table.
        nn.init.zeros_(self.layer.weight)
        nn.init.zeros_(self.layer.bias)
        self.register_buffer("size", torch.zeros(size))

    @full_precision()
    def forward(self, states: Float[Tensor, "N E"], words: Int[Tensor, " N"]) -> Shifts:
        """The shifts of occurrences of these words, whose encoder states are given."""
        config, size = self.config, self.size[words]
        change = self.change(states)
        moved = change.abs() * size
        may_shift = (size >= config.eligible_from) & (size > 0)
        is_shifted = may_shift & (moved >= config.least)
        change = torch.where(may_shift, change, 0.0)
        factor = 1 + _Materially.apply(change, is_shifted)  # pyright: ignore[reportOperatorIssue]
        smooth = torch.sigmoid((moved - config.least) / KERNEL) * may_shift
        return Shifts(factor, is_shifted, smooth)

    @full_precision()
    def change(self, states: Float[Tensor, "N E"]) -> Float[Tensor, " N"]:
        """How far context would move each word from its default, as a multiple of it, were it material."""
        # Row by row, not as a product of matrices: what is read of a word does not hang on how many others are read.
        pull = (states.to(self.layer.weight.dtype) * self.layer.weight).sum(-1) + self.layer.bias
        return self.config.activation * torch.tanh(pull)


class _Materially(torch.autograd.Function):
    """Zero where a change is immaterial. Gradients pass through: what cannot act yet must be able to grow."""

    @staticmethod
    def forward(ctx: Any, change: Tensor, is_material: Tensor) -> Tensor:
        del ctx
        return torch.where(is_material, change, 0.0)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        del ctx
        return grads[0], None
