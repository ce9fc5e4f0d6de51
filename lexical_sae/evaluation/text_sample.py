"""A fair sample of a corpus, for what cannot be measured while the texts stream by."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lexical_sae.evaluation.circuit_words import speaks_for_predicted
from lexical_sae.evaluation.collect import ReadBatch
from lexical_sae.models.sparse_code import SparseCode
from lexical_sae.utils.errors import DataError


@dataclass(frozen=True)
class TextSample:
    """Some texts of a corpus with their classes and active words, in the order of the corpus; on the CPU."""

    rows: tuple[int, ...]
    texts: tuple[str, ...]
    classes: Int[Tensor, " N"]
    code: SparseCode
    contributions: Float[Tensor, " K"]
    """Of every active word to the predicted class, class-centred."""
    word_vectors: Float[Tensor, "V H"]
    """The head's first layer."""
    draws: tuple[float, ...]
    """The random number of each text; the highest were kept. Split the sample by these: places follow the labels."""

    def few(self, limit: int) -> tuple[list[int], list[str], list[int]]:
        """Rows, texts and classes of at most that many of them, those with the highest random numbers."""
        chosen = sorted(sorted(range(len(self.rows)), key=lambda i: -self.draws[i])[:limit])
        return [self.rows[i] for i in chosen], [self.texts[i] for i in chosen], self.classes[chosen].tolist()


class _Kept(NamedTuple):
    draw: float
    row: int
    text: str
    label: int
    ids: Tensor
    values: Tensor
    contributions: Tensor


class TextSampler:
    """Keeps at most `limit` texts; which ones depends on the seed and their places in the corpus alone."""

    def __init__(self, limit: int = 2000, seed: int = 0) -> None:
        self.limit, self.seed = limit, seed
        self._word_vectors = torch.empty(0, 0)
        # A heap: the text with the lowest random number is first and goes first.
        self._kept: list[_Kept] = []

    def update(self, batch: ReadBatch) -> None:
        """Keep the sampled texts of a batch."""
        code = batch.state.code
        self._word_vectors = batch.state.word_vectors.detach()
        said = speaks_for_predicted(batch).cpu()
        for i, row in enumerate(batch.rows):
            draw = float(np.random.default_rng([self.seed, 3, row]).random())
            if len(self._kept) == self.limit and draw <= self._kept[0].draw:
                continue
            here = code.text(i)
            words = code.ids[here].cpu(), code.values[here].detach().cpu(), said[here].clone()
            heapq.heappush(self._kept, _Kept(draw, row, batch.texts[i], int(batch.classes[i]), *words))
            if len(self._kept) > self.limit:
                heapq.heappop(self._kept)

    def sample(self) -> TextSample:
        """The kept texts."""
        if not self._kept:
            raise DataError("there is no text to read; give at least one")
        kept = sorted(self._kept, key=lambda text: text.row)
        vectors = self._word_vectors.cpu()
        return TextSample(
            rows=tuple(text.row for text in kept),
            texts=tuple(text.text for text in kept),
            classes=torch.tensor([text.label for text in kept]),
            code=join_codes([(text.ids, text.values) for text in kept], len(vectors)),
            contributions=torch.cat([text.contributions for text in kept]),
            word_vectors=vectors,
            draws=tuple(text.draw for text in kept),
        )


def join_codes(texts: Sequence[tuple[Tensor, Tensor]], size: int) -> SparseCode:
    """One code of several texts, each given as the ids and activations of its words."""
    counts = torch.tensor([len(ids) for ids, _ in texts])
    rows = torch.arange(len(texts)).repeat_interleave(counts)
    ids, values = (torch.cat([text[part] for text in texts]) for part in (0, 1))
    return SparseCode.from_entries(rows, ids, values, torch.full_like(rows, -1), (len(texts), size))
