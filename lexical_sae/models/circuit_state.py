"""`CircuitState`: a decision with everything needed to take it apart exactly; `circuit_mask`: which words carry it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import ClassVar, overload

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lexical_sae.models.sparse_code import SparseCode
from lexical_sae.utils.precision import full_precision


@dataclass(frozen=True, init=False)
class CircuitState:
    """One decision per leading index, with its exact linear form `logits = W_eff @ sparse_vector + b_eff`.

    Behaves as the named tuple `(logits, sparse_vector, W_eff, b_eff)`: made, indexed, sliced and unpacked as one.
    `W_eff` is kept as two factors, `W_eff = readout @ word_vectors.T`, because `[*batch, C, V]` is large and rarely
    needed whole: `W_eff` makes it, `effective_rows` and `effective_columns` make the part that is wanted.
    """

    _fields: ClassVar = ("logits", "sparse_vector", "W_eff", "b_eff")

    logits: Float[Tensor, "*batch C"]
    sparse_vector: Float[Tensor, "*batch V"]
    readout: Float[Tensor, "*batch C H"]
    """How much each hidden unit, at this input, counts for each class."""
    word_vectors: Float[Tensor, "V H"]
    """How much each word feeds each hidden unit; shared by the whole batch."""
    b_eff: Float[Tensor, "*batch C"]

    def __init__(
        self,
        logits: Float[Tensor, "*batch C"],
        sparse_vector: Float[Tensor, "*batch V"],
        W_eff: Float[Tensor, "*batch C V"] | None = None,
        b_eff: Float[Tensor, "*batch C"] | None = None,
        *,
        readout: Float[Tensor, "*batch C H"] | None = None,
        word_vectors: Float[Tensor, "V H"] | None = None,
    ) -> None:
        """From a dense `W_eff`, or from its factors."""
        if (W_eff is None) == (readout is None or word_vectors is None) or b_eff is None:
            raise TypeError("a CircuitState takes b_eff, and either W_eff or both readout and word_vectors")
        if W_eff is not None:
            readout, word_vectors = _factors(W_eff)
        parts = (logits, sparse_vector, readout, word_vectors, b_eff)
        for part, value in zip(fields(self), parts, strict=True):
            # As the __init__ of a frozen dataclass does.
            object.__setattr__(self, part.name, value)

    @property
    @full_precision()
    def W_eff(self) -> Float[Tensor, "*batch C V"]:
        """The effective weights, dense."""
        return self.readout @ self.word_vectors.T

    @full_precision()
    def effective_rows(self, class_indices: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch V"]:
        """The row of `W_eff` of one class per sample."""
        row = self.readout.take_along_dim(class_indices[..., None, None], dim=-2).squeeze(-2)
        return row @ self.word_vectors.T

    @full_precision()
    def effective_columns(self, word_ids: Int[Tensor, " K"]) -> Float[Tensor, "*batch C K"]:
        """The columns of `W_eff` of the given words."""
        return self.readout @ self.word_vectors[word_ids].T

    def __len__(self) -> int:
        return len(self._fields)

    @overload
    def __getitem__(self, index: int) -> Tensor: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Tensor, ...]: ...
    def __getitem__(self, index: int | slice) -> Tensor | tuple[Tensor, ...]:
        """As of a tuple; `W_eff` is made only if it is among the fields."""
        if isinstance(index, slice):
            return tuple(getattr(self, name) for name in self._fields[index])
        return getattr(self, self._fields[index])

    def __iter__(self) -> Iterator[Tensor]:
        return (getattr(self, name) for name in self._fields)


def _factors(W_eff: Float[Tensor, "*batch C V"]) -> tuple[Float[Tensor, "*batch C R"], Float[Tensor, "V R"]]:
    """Two factors of a dense `W_eff`, exactly: one hidden unit per row, which that row alone reads."""
    rows = W_eff.reshape(-1, W_eff.shape[-1])
    own = torch.eye(len(rows), dtype=rows.dtype, device=rows.device)
    return own.reshape(*W_eff.shape[:-1], len(rows)), rows.T


@dataclass(frozen=True)
class SparseCircuitState:
    """The same decisions for texts given as a `SparseCode`: nothing in it has a place for every word of every text."""

    logits: Float[Tensor, "B C"]
    code: SparseCode
    readout: Float[Tensor, "B C H"]
    word_vectors: Float[Tensor, "V H"]
    b_eff: Float[Tensor, "B C"]


SequenceCircuitState = CircuitState
TagCircuitState = CircuitState


def largest_k_mask(values: Float[Tensor, "*batch V"], k: Int[Tensor, "*batch"] | int) -> Bool[Tensor, "*batch V"]:
    """True at the k largest values of each row; of equal values the lowest index is taken first.

    Example: `largest_k_mask([3, 5, 5, 1], 2) -> [F, T, T, F]`, and with k=1 `[F, T, F, F]`.
    """
    size = values.shape[-1]
    counts = torch.as_tensor(k, device=values.device).clamp(0, size).expand(values.shape[:-1])[..., None]
    most = int(counts.max()) if counts.numel() else 0
    if most == 0:
        return torch.zeros_like(values, dtype=torch.bool)
    # topk breaks ties as it likes; only its values are used, so the choice among equals is ours.
    top = values.topk(most, dim=-1).values
    kth = top.gather(-1, (counts - 1).clamp(min=0))
    above, tied = values > kth, values == kth
    room = counts - above.sum(-1, keepdim=True)
    return (above | (tied & (tied.cumsum(-1) <= room))) & (counts > 0)


def circuit_size(active: Bool[Tensor, "*batch V"], fraction: float) -> Int[Tensor, "*batch"]:
    """How many words a circuit has: `max(1, round(fraction * K))` of the K *active* words; none where none is active.

    Example: 120 active words of 30,522 and a fraction of 0.1 -> 12 words, not 3,052.
    """
    count = active.sum(-1)
    return (count * fraction).round().long().clamp(min=1).minimum(count)


def circuit_mask(
    attr: Float[Tensor, "*batch V"], active: Bool[Tensor, "*batch V"], fraction: float, temperature: float
) -> Float[Tensor, "*batch V"]:
    """How far each word belongs to the circuit: near one for the `circuit_size` active words of largest |attr|.

    `sigmoid(temperature * (|attr| - t) / scale)` at active words and zero elsewhere. t is the midpoint of the k-th and
    the (k+1)-th largest |attr| among active words (0 after the last), scale the mean |attr| over active words; both
    are detached. At an infinite temperature the mask is hard, keeps exactly k words and breaks ties by the lowest id.
    Training and evaluation call this one function.

    Example: attr=[4, -8, 1, 0], active=[T, T, T, F], fraction 0.34, temperature inf -> [0, 1, 0, 0]
    """
    # Words active nowhere in the batch belong to no circuit: leave out their columns, nearly all of the vocabulary.
    # The number of rows is counted: a shape without columns does not determine it.
    columns = active.reshape(math.prod(active.shape[:-1]), active.shape[-1]).any(0).nonzero().flatten()
    mask = _mask_columns(attr[..., columns], active[..., columns], fraction, temperature)
    return torch.zeros_like(attr).index_copy(-1, columns, mask)


def _mask_columns(
    attr: Float[Tensor, "*batch K"], active: Bool[Tensor, "*batch K"], fraction: float, temperature: float
) -> Float[Tensor, "*batch K"]:
    """`circuit_mask` of some columns."""
    if attr.numel() == 0:
        return attr
    magnitude = attr.abs()
    # Below every active word, so that no inactive word is ever among the k largest.
    ranked = magnitude.detach().masked_fill(~active, -1.0)
    kept = largest_k_mask(ranked, circuit_size(active, fraction))
    if math.isinf(temperature):
        return kept.to(attr.dtype)
    last_in = ranked.masked_fill(~kept, torch.inf).amin(-1, keepdim=True)
    first_out = ranked.masked_fill(kept, 0.0).clamp(min=0).amax(-1, keepdim=True)
    # Rows without active words have an infinite threshold; their mask is filled with zeros below.
    threshold = ((last_in + first_out) / 2).nan_to_num(posinf=0.0)
    scale = ranked.clamp(min=0).sum(-1, keepdim=True) / active.sum(-1, keepdim=True).clamp(min=1)
    sharpness = temperature / scale.clamp(min=1e-12)
    return ((magnitude - threshold) * sharpness).sigmoid().masked_fill(~active, 0.0)


def compute_active_slice_weff(
    sparse_vector: Float[Tensor, "B V"], W_eff: Float[Tensor, "B C V"] | CircuitState
) -> tuple[Float[Tensor, "B C K"], Int[Tensor, " K"]]:
    """`W_eff` at the words that are active anywhere in the batch, and the ids of those words.

    Given a `CircuitState` instead of a dense `W_eff`, the dense matrix is never made.
    """
    active_ids = (sparse_vector != 0).any(0).nonzero().flatten()
    if isinstance(W_eff, CircuitState):
        return W_eff.effective_columns(active_ids), active_ids
    return W_eff[:, :, active_ids], active_ids
