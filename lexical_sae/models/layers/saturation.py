"""Saturation: how the activation of an active word is compressed before pooling."""

from typing import ClassVar, Literal

from jaxtyping import Float
from torch import Tensor, nn

from lexical_sae.utils.part import PartConfig


class Log1p(nn.Module):
    """`log(1 + x)`: a ten times larger activation counts about twice as much."""

    REFERENCE: ClassVar = "Formal et al. 2021, arXiv:2107.05720"

    class Config(PartConfig):
        kind: Literal["log1p"] = "log1p"

        def build(self) -> "Log1p":
            return Log1p()

    def forward(self, activated: Float[Tensor, "*batch V"]) -> Float[Tensor, "*batch V"]:
        return activated.log1p()


class Identity(nn.Module):
    """No saturation: activations stay as the gate gives them."""

    class Config(PartConfig):
        kind: Literal["identity"] = "identity"

        def build(self) -> "Identity":
            return Identity()

    def forward(self, activated: Float[Tensor, "*batch V"]) -> Float[Tensor, "*batch V"]:
        return activated
