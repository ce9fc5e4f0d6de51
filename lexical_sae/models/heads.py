"""Task heads: from a sparse vector to a `CircuitState`. A head knows nothing of tokens, only of dimensions.

Both heads keep their first layer as `word_vectors` [V, H], a contiguous row per word, because an explanation reads
the rows of the ~100 active words and nothing else. Both compute in the precision of their own weights, also while
autocast runs the encoder in less; weights in half precision are refused.
"""

from typing import ClassVar, Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.nn.utils import parametrize

from lexical_sae.models.circuit_state import CircuitState, SparseCircuitState
from lexical_sae.models.sparse_code import SparseCode
from lexical_sae.models.table_head import TableHead
from lexical_sae.utils.part import PartConfig
from lexical_sae.utils.precision import full_precision, refuse_half_precision

CLASSIFY, TAG = "classify", "tag"
"""Names of the heads that decide on documents, and on positions."""
UNDECIDED = 0.5
"""Greatest root mean square of class-centred logits that a head may start with."""


@runtime_checkable
class ComputedRows(Protocol):
    """A parametrization of a first layer that can compute some rows without the others."""

    def rows(self, own: Float[Tensor, "V H"], words: Int[Tensor, " K"]) -> Float[Tensor, "K H"]: ...


def rows_of(head: nn.Module, layer: str, words: Int[Tensor, " K"] | None) -> Float[Tensor, "K H"]:
    """Rows of some words of a head's first layer, or all of them; what is computed is computed for those alone."""
    if words is None:
        return getattr(head, layer)
    if not parametrize.is_parametrized(head, layer):
        return head.get_parameter(layer).index_select(0, words)
    computed = head.get_submodule(f"parametrizations.{layer}")
    (together,) = computed.children()
    assert isinstance(together, ComputedRows)
    return together.rows(computed.get_parameter("original"), words)


class ReluHead(nn.Module):
    """Two layers, `W2 relu(W1 s + b1) + b2`: piecewise linear, so every prediction has an exact linear form.

    With D the units that are on at this input, `W_eff = (W2 * D) W1` and `b_eff = (W2 * D) b1 + b2`.
    """

    REFERENCE: ClassVar = "Balestriero & Baraniuk 2018, arXiv:1802.09210"
    is_piecewise_linear = True
    word_layer = "word_vectors"
    """The parameter with a row per word."""

    class Config(PartConfig):
        kind: Literal["relu"] = "relu"
        hidden_units: int = Field(default=256, ge=1)
        """Width H of the hidden layer."""
        start_from_embeddings: bool = False
        """Whether word vectors start as random projections of the words' embeddings instead of at random, so that what
        is learned about frequent words holds for rare ones near to them from the start."""

        def build(self, size: int, num_labels: int) -> "ReluHead":
            return ReluHead(self, size, num_labels)

    def __init__(self, config: Config, size: int, num_labels: int) -> None:
        super().__init__()
        width = config.hidden_units
        self.word_vectors = nn.Parameter(torch.empty(size, width))
        self.hidden_bias = nn.Parameter(torch.zeros(width))
        self.class_weights = nn.Parameter(torch.empty(num_labels, width))
        self.class_bias = nn.Parameter(torch.zeros(num_labels))
        # About a hundred words are active, with activations near one, not all V: scale for those.
        nn.init.normal_(self.word_vectors, std=0.1)
        nn.init.xavier_uniform_(self.class_weights)
        self.config = config

    @torch.no_grad()
    def start_from(self, embeddings: Float[Tensor, "V D"]) -> None:
        """Word vectors as random projections of the embeddings, if the settings ask for it."""
        if not self.config.start_from_embeddings:
            return
        rows = normalize(embeddings - embeddings.mean(0), dim=-1)
        # Near words now add up instead of cancelling: smaller than vectors drawn one by one.
        drawn = torch.randn(rows.shape[1], self.word_vectors.shape[1], dtype=rows.dtype)
        self.word_vectors.copy_(0.03 * rows @ drawn.to(rows.device))

    @torch.no_grad()
    def calm(self, sparse_vectors: Float[Tensor, "N V"]) -> None:
        """Shrink the class weights where they make a head that has learned nothing sure of these texts.

        Strengths of ten instead of one would give logits of ten: cross-entropy is then lowered fastest by closing every
        word, and nothing is learned any more.
        """
        logits = self(sparse_vectors).logits
        size = (logits - logits.mean(-1, keepdim=True)).square().mean().sqrt()
        if size > UNDECIDED:
            self.class_weights.mul_(UNDECIDED / size)

    @full_precision()
    def forward(self, sparse_vector: Float[Tensor, "*batch V"], words: Int[Tensor, " V"] | None = None) -> CircuitState:
        """The decision; with `words`, on vectors that have a place for those dimensions alone."""
        word_vectors = rows_of(self, self.word_layer, words)
        s = sparse_vector.to(word_vectors.dtype)
        logits, readout, b_eff = self._decide(s @ word_vectors)
        return CircuitState(logits, s, b_eff=b_eff, readout=readout, word_vectors=word_vectors)

    @full_precision()
    def read(self, code: SparseCode) -> SparseCircuitState:
        """The same decisions from the rows of the active words alone."""
        logits, readout, b_eff = self._decide(code.weighted_sum(self.word_vectors))
        return SparseCircuitState(logits, code, readout, self.word_vectors, b_eff)

    def _decide(self, product: Float[Tensor, "*batch H"]) -> tuple[Tensor, Tensor, Tensor]:
        """Logits, readout and bias from `W1 s`."""
        refuse_half_precision(self.class_weights)
        hidden = product + self.hidden_bias
        # (W2 * D) @ W1, not W2 @ (D * W1): the second makes a [B, H, V] tensor.
        readout = self.class_weights * (hidden > 0)[..., None, :]
        logits = hidden.relu() @ self.class_weights.T + self.class_bias
        return logits, readout, readout @ self.hidden_bias + self.class_bias


class BcosHead(nn.Module):
    """B-cos layers without bias: `logits = W(s) s`, exact at any depth, though not piecewise linear.

    Each layer computes `|cos(x, w)|^(B-1) * (w_hat . x)`; its dynamic weight is `|cos|^(B-1) * w_hat`, so the product
    of the layers' dynamic weights is `W_eff` and `b_eff` is zero. Direct logit attribution is exact, but it is not
    gradient times input.
    """

    REFERENCE: ClassVar = "Böhle et al. 2022, arXiv:2205.10268"
    is_piecewise_linear = False
    word_layer = "word_weights"
    """The parameter with a row per word."""

    class Config(PartConfig):
        kind: Literal["bcos"] = "bcos"
        layers: int = Field(default=2, ge=2)
        """How many layers there are, that of the words and that of the classes included."""
        hidden_units: int = Field(default=256, ge=1)
        """Width H of every layer but the last."""
        exponent: float = Field(default=2.0, ge=1)
        """B: how strongly a unit prefers inputs aligned with its weights; 1 is a linear layer."""

        def build(self, size: int, num_labels: int) -> "BcosHead":
            return BcosHead(self, size, num_labels)

    def __init__(self, config: Config, size: int, num_labels: int) -> None:
        super().__init__()
        self.exponent = config.exponent
        width = config.hidden_units
        self.word_weights = nn.Parameter(torch.empty(size, width))
        self.hidden_weights = nn.ParameterList(torch.empty(width, width) for _ in range(config.layers - 2))
        self.class_weights = nn.Parameter(torch.empty(num_labels, width))
        nn.init.normal_(self.word_weights, std=0.1)
        for weights in (*self.hidden_weights, self.class_weights):
            nn.init.xavier_uniform_(weights)

    def start_from(self, embeddings: Float[Tensor, "V D"]) -> None:
        """This head always starts at random."""

    def calm(self, sparse_vectors: Float[Tensor, "N V"]) -> None:
        """Nothing to shrink: only the directions of weights count here."""

    @full_precision()
    def forward(self, sparse_vector: Float[Tensor, "*batch V"], words: Int[Tensor, " V"] | None = None) -> CircuitState:
        """The decision; with `words`, on vectors that have a place for those dimensions alone."""
        s = sparse_vector.to(self.word_weights.dtype)
        word_vectors = unit_rows(self.word_weights.T).T
        # Some words' rows have the length that all words together give a unit.
        word_vectors = word_vectors if words is None else word_vectors[words]
        logits, readout = self._decide(s @ word_vectors, s.norm(dim=-1, keepdim=True))
        no_bias = torch.zeros_like(logits)
        return CircuitState(logits, s, b_eff=no_bias, readout=readout, word_vectors=word_vectors)

    @full_precision()
    def read(self, code: SparseCode) -> SparseCircuitState:
        """The same decisions from the rows of the active words alone."""
        word_vectors = unit_rows(self.word_weights.T).T
        squares = code.values.new_zeros(len(code)).index_add_(0, code.rows, code.values.square())
        logits, readout = self._decide(code.weighted_sum(word_vectors), squares.sqrt()[:, None])
        return SparseCircuitState(logits, code, readout, word_vectors, torch.zeros_like(logits))

    def _decide(
        self, first: Float[Tensor, "*batch H"], length: Float[Tensor, "*batch 1"]
    ) -> tuple[Float[Tensor, "*batch C"], Float[Tensor, "*batch C H"]]:
        """Logits and readout from the first layer's projections and the length of its input."""
        refuse_half_precision(self.class_weights)
        scales = [alignment(first, length, self.exponent)]
        outputs = first * scales[0]
        vectors = [unit_rows(weights) for weights in (*self.hidden_weights, self.class_weights)]
        for unit_vectors in vectors:
            projections = outputs @ unit_vectors.T
            scales.append(alignment(projections, outputs.norm(dim=-1, keepdim=True), self.exponent))
            outputs = projections * scales[-1]
        # From the classes down: never more than C rows per text, where from the words up there would be H.
        *below, last = vectors
        readout = scales[-1][..., None] * last
        for unit_vectors, scale in zip(reversed(below), reversed(scales[1:-1]), strict=True):
            readout = (readout * scale[..., None, :]) @ unit_vectors
        return outputs, readout * scales[0][..., None, :]


Head = ReluHead | BcosHead | TableHead


def unit_rows(weights: Float[Tensor, "H V"]) -> Float[Tensor, "H V"]:
    """Weights with every row scaled to length one."""
    return weights / weights.norm(dim=-1, keepdim=True).clamp(min=1e-12)


def alignment(
    projections: Float[Tensor, "*batch H"], length: Float[Tensor, "*batch 1"], exponent: float
) -> Float[Tensor, "*batch H"]:
    """`|cos|^(B-1)` of an input with each unit weight, from the projections `w_hat . x` and the input's length.

    As good as zero for a zero input.
    """
    cosine = (projections / length.clamp(min=1e-12)).abs()
    # Between exponents 1 and 2 the slope at zero is infinite: a text without words would make every gradient NaN.
    return cosine.clamp(min=torch.finfo(cosine.dtype).tiny).pow(exponent - 1)
