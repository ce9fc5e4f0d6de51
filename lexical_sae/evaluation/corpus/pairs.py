"""Two models read the same texts; words are matched by name and classes by label, so that the two can be compared."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lexical_sae.data.dimensions import DimensionTable
from lexical_sae.evaluation.collect import ReadBatch, read_corpus
from lexical_sae.inference.labels import labels_of
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.utils.errors import DataError
from lexical_sae.utils.progress import OnStep, silent


@dataclass(frozen=True)
class Saying:
    """What one model says of a batch; classes are numbered as the first model numbers them."""

    logits: Float[Tensor, "B C"]
    b_eff: Float[Tensor, "B C"]
    contributions: Float[Tensor, "N C"]
    """Class-centred, for every word of the pair; zero where the word is not active in this model."""
    predicted: Int[Tensor, " B"]
    """The model's own decision: of equal logits, that of the label that stands first in the model itself."""


@dataclass(frozen=True)
class PairedBatch:
    """Some texts, read by two models. In double precision on the CPU."""

    rows: tuple[int, ...]
    """Place of each text in the corpus."""
    texts: tuple[str, ...]
    classes: Int[Tensor, " B"]
    """The class that each text counts under: its label, or else the first model's decision."""
    text_of: Int[Tensor, " N"]
    words: Int[Tensor, " N"]
    """Every word that is active in either model: in which text of the batch, and its number among the shared names."""
    before: Saying
    after: Saying


class ModelPair:
    """Two models of one task."""

    listed: Bool[Tensor, " N"]
    """Which of the shared names a list may name: those that either model lists."""

    def __init__(self, before: LexicalSAE, after: LexicalSAE, *, all_tokens: bool = False) -> None:
        self.before, self.after = before, after
        self.labels = labels_of(before)
        self.order = _label_order(self.labels, labels_of(after))
        self.names, self._before_words, self._after_words = shared_names(before.dimensions, after.dimensions)
        self.listed = torch.zeros(len(self.names), dtype=torch.bool)
        for model, words in ((before, self._before_words), (after, self._after_words)):
            self.listed[words[model.dimensions.listed_mask(all_tokens=all_tokens)]] = True

    def read(
        self, texts: Iterable[str], labels: Iterable[Any] | None, batch_size: int = 32, on_step: OnStep = silent
    ) -> Iterator[PairedBatch]:
        """What both say of the texts, batch after batch."""
        # Each model reads for itself: from one generator the second would get what the first left.
        texts = texts if hasattr(texts, "__len__") else list(texts)
        old_batches = read_corpus(self.before, texts, labels, batch_size)
        new_batches = read_corpus(self.after, texts, None, batch_size, on_step)
        for old, new in zip(old_batches, new_batches, strict=True):
            yield self._pair(old, new)

    def _pair(self, old: ReadBatch, new: ReadBatch) -> PairedBatch:
        split = len(old.state.code.ids)
        places = torch.cat([self._places(old, self._before_words), self._places(new, self._after_words)])
        either, at = places.unique(return_inverse=True)
        same = list(range(len(self.labels)))
        return PairedBatch(
            old.rows,
            old.texts,
            old.classes.cpu(),
            either // len(self.names),
            either % len(self.names),
            _saying(old, same, at[:split], len(either)),
            _saying(new, self.order, at[split:], len(either)),
        )

    def _places(self, batch: ReadBatch, numbers: Int[Tensor, " V"]) -> Int[Tensor, " K"]:
        """One number for the text and the word of each active word."""
        code = batch.state.code
        return code.rows.cpu() * len(self.names) + numbers[code.ids.cpu()]


def _saying(batch: ReadBatch, order: list[int], at: Int[Tensor, " K"], size: int) -> Saying:
    state, contributions = batch.state, batch.contributions
    logits, b_eff, values = (part.cpu().double()[:, order] for part in (state.logits, state.b_eff, contributions))
    predicted = torch.tensor(order).argsort()[batch.predicted.cpu()]
    return Saying(logits, b_eff, values.new_zeros(size, len(order)).index_copy(0, at, values), predicted)


def shared_names(
    before: DimensionTable, after: DimensionTable
) -> tuple[list[str], Int[Tensor, " V"], Int[Tensor, " W"]]:
    """Every name that either table has, and where the dimensions of each table stand among them.

    Example: tables [a, b] and [b, c] -> [a, b, c], [0, 1] and [1, 2]
    """
    tables = [table.names(range(len(table))) for table in (before, after)]
    place = {name: i for i, name in enumerate(dict.fromkeys([*tables[0], *tables[1]]))}
    first, second = (torch.tensor([place[name] for name in names]) for names in tables)
    return list(place), first, second


def _label_order(before: Sequence[str], after: Sequence[str]) -> list[int]:
    """Where each label of the first model stands in the second."""
    if set(before) != set(after):
        raise DataError(
            f"the models have different labels, {', '.join(before)} and {', '.join(after)}; "
            "only models of one task can be compared"
        )
    return [list(after).index(label) for label in before]
