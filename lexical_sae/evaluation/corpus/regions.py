"""Which hidden units are on in which texts: a fair sample of a corpus, as the region atlas reads it."""

import heapq
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lexical_sae.evaluation.collect import ReadBatch
from lexical_sae.mechanistic.exact.forms import Head, ReluLayers, relu_layers
from lexical_sae.models.sparse_code import SparseCode
from lexical_sae.utils.errors import DataError


@dataclass(frozen=True)
class RegionSample:
    """The hidden layer and the active words of some texts of a corpus; on the CPU, all but the word vectors in fp64."""

    hidden: Float[Tensor, "N H"]
    """What enters the ReLU."""
    code: SparseCode
    word_vectors: Float[Tensor, "V H"]
    layers: ReluLayers
    texts: int
    """Number of texts that the sample was drawn from."""
    share_on: Float[Tensor, " H"]
    """Share of all those texts in which each unit is on."""

    @property
    def is_on(self) -> Bool[Tensor, "N H"]:
        """The region of each text: the units that are on in it."""
        return self.hidden > 0

    @property
    def centered_readout(self) -> Float[Tensor, "C H"]:
        """Contribution of each active hidden unit to each class, against the mean of all classes."""
        weights = self.layers.class_weights
        return weights - weights.mean(0)

    def logits(self, gates: Float[Tensor, "N H"] | Float[Tensor, " H"]) -> Float[Tensor, "N C"]:
        """The decisions if units were open this far; `is_on` as numbers gives the model's own."""
        return (gates * self.hidden) @ self.layers.class_weights.T + self.layers.class_bias


class _KeptText(NamedTuple):
    draw: float
    row: int
    hidden: Float[Tensor, " H"]
    ids: Int[Tensor, " K"]
    values: Float[Tensor, " K"]


class RegionSampler:
    """Keeps a sample of at most `limit` texts; which ones depends on the seed and their places in the corpus alone."""

    def __init__(self, head: Head, limit: int = 2000, seed: int = 0) -> None:
        layers = relu_layers(head)
        if layers is None:
            raise DataError(
                f"{type(head).__name__} has no regions: its weights change with every text; "
                "an atlas needs a piecewise linear head (head: relu)"
            )
        parts: Any = head
        self.word_vectors: Float[Tensor, "V H"] = parts.word_vectors.detach().cpu()
        self.layers = ReluLayers(*(_plain(part) for part in layers))
        self.limit, self.seed = limit, seed
        self.texts = 0
        self.on_count = torch.zeros(len(self.layers.hidden_bias), dtype=torch.float64, device="cpu")
        # A heap: the text with the smallest draw stands first and is the first to go.
        self._kept: list[_KeptText] = []

    def update(self, batch: ReadBatch) -> None:
        """Count which units are on, and keep the texts that the draw wants."""
        code = batch.state.code
        hidden = _plain(code.weighted_sum(batch.state.word_vectors)) + self.layers.hidden_bias
        self.on_count += (hidden > 0).sum(0)
        self.texts += len(batch.rows)
        for i, row in enumerate(batch.rows):
            draw = float(np.random.default_rng([self.seed, row]).random())
            if len(self._kept) == self.limit and draw <= self._kept[0].draw:
                continue
            here = code.text(i)
            text = _KeptText(draw, row, hidden[i].clone(), code.ids[here].cpu(), _plain(code.values[here]))
            heapq.heappush(self._kept, text)
            if len(self._kept) > self.limit:
                heapq.heappop(self._kept)

    def sample(self) -> RegionSample:
        """The kept texts, in the order of the corpus."""
        if not self._kept:
            raise DataError("there is no text to read; give at least one")
        kept = sorted(self._kept, key=lambda text: text.row)
        ids, values = torch.cat([text.ids for text in kept]), torch.cat([text.values for text in kept])
        rows = torch.repeat_interleave(torch.arange(len(kept)), torch.tensor([len(text.ids) for text in kept]))
        shape = (len(kept), len(self.word_vectors))
        code = SparseCode.from_entries(rows, ids, values, torch.full_like(rows, -1), shape)
        hidden = torch.stack([text.hidden for text in kept])
        return RegionSample(hidden, code, self.word_vectors, self.layers, self.texts, self.on_count / self.texts)


def _plain(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().double()
