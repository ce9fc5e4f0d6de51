"""A sparse autoencoder over hidden states: what one fits to a dense encoder afterwards, to get features out of it.

    code  = activation(((h - centre) / scale) @ reader + bias)
    state = code @ dictionary * scale + centre

Rows of the dictionary have length one, so that a feature's activation is how much of the state it accounts for. Two
activations are known: `nn.ReLU`, made sparse by a penalty, and `LargestK`, sparse by construction. Fitting is the work
of `lexical_sae.studies.post_hoc_sae.fitting`.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import normalize

from lexical_sae.models.circuit_state import largest_k_mask


class LargestK(nn.Module):
    """Keeps the k greatest positive features of each state, in training too.

    Example: k=1 on [3, 5, -9] -> [0, 5, 0]
    """

    REFERENCE = "Gao et al. 2024, arXiv:2406.04093"

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k

    def forward(self, logits: Float[Tensor, "*batch F"]) -> Float[Tensor, "*batch F"]:
        activations = logits.relu()
        return activations * largest_k_mask(activations.detach(), self.k)


class SparseAutoencoder(nn.Module):
    """Hidden states as sums of a few directions, F in number.

    It starts with random directions, read by their own transpose.
    """

    REFERENCE = "Bricken et al. 2023, Towards Monosemanticity"
    centre: Tensor
    scale: Tensor

    def __init__(self, width: int, features: int, activation: nn.Module) -> None:
        super().__init__()
        directions = normalize(torch.randn(features, width), dim=-1)
        self.dictionary = nn.Parameter(directions)
        self.reader = nn.Parameter(directions.T.clone())
        self.bias = nn.Parameter(torch.zeros(features))
        self.activation = activation
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("scale", torch.ones(()))

    @torch.no_grad()
    def centre_on(self, states: Float[Tensor, "N E"]) -> None:
        """Take the mean of the states for the centre, and for the scale what makes the mean squared length one."""
        self.centre.copy_(states.mean(0))
        spread = (states - self.centre).square().sum(-1).mean().sqrt()
        self.scale.copy_(spread if spread > 0 else torch.ones_like(spread))

    def encode(self, states: Float[Tensor, "*batch E"]) -> Float[Tensor, "*batch F"]:
        """Strength of each feature."""
        return self.activation((states - self.centre) / self.scale @ self.reader + self.bias)

    def decode(self, code: Float[Tensor, "*batch F"]) -> Float[Tensor, "*batch E"]:
        """The state that the features add up to."""
        return code @ self.dictionary * self.scale + self.centre

    def forward(self, states: Float[Tensor, "*batch E"]) -> Float[Tensor, "*batch E"]:
        return self.decode(self.encode(states))

    @torch.no_grad()
    def normalise(self) -> None:
        """Give every row of the dictionary length one again."""
        self.dictionary.copy_(normalize(self.dictionary, dim=-1))
