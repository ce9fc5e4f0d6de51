"""Texts that two models decide differently, and the words that did it."""

import heapq
from collections import Counter
from dataclasses import dataclass

import torch

from lexical_sae.evaluation.corpus.lexicon import PieceSum
from lexical_sae.evaluation.corpus.pairs import ModelPair, PairedBatch


@dataclass(frozen=True)
class FlipWord:
    """What a word says for the new label rather than the old one, in each model."""

    name: str
    before: float
    after: float
    difference: float


@dataclass(frozen=True)
class Flip:
    """A text that the two models decide differently.

    The differences of `words`, `other_words`, `pieces` and `bias` sum to `margin_after - margin_before`, exactly.
    """

    text: str
    row: int
    """Place in the corpus."""
    before: str
    after: str
    margin_before: float
    """Logit of the new label minus that of the old one."""
    margin_after: float
    words: tuple[FlipWord, ...]
    """Those that did most for the change first."""
    other_words: float
    pieces: PieceSum | None
    """Word pieces and symbols, where they are not listed."""
    bias: float


class FlipCollector:
    """Counts the flips by old and new label, and keeps those with the greatest change of margin."""

    def __init__(self, pair: ModelPair, top: int, limit: int) -> None:
        self.labels, self.names, self.listed = pair.labels, pair.names, pair.listed
        self.top, self.limit = top, limit
        self.between: Counter[tuple[str, str]] = Counter()
        self._kept: list[tuple[float, int, Flip]] = []

    def update(self, batch: PairedBatch) -> None:
        """Add the flips of a batch."""
        for i in (batch.before.predicted != batch.after.predicted).nonzero().flatten().tolist():
            flip = self._flip(batch, i)
            self.between[flip.before, flip.after] += 1
            # Of equal changes the first of the corpus stays.
            heapq.heappush(self._kept, (flip.margin_after - flip.margin_before, -flip.row, flip))
            if len(self._kept) > self.limit:
                heapq.heappop(self._kept)

    @property
    def flips(self) -> tuple[Flip, ...]:
        """The greatest changes of margin first."""
        return tuple(item[2] for item in sorted(self._kept, key=lambda item: item[:2], reverse=True))

    def _flip(self, batch: PairedBatch, i: int) -> Flip:
        was, now = int(batch.before.predicted[i]), int(batch.after.predicted[i])
        inside = (batch.text_of == i).nonzero().flatten()
        # Towards the new label and away from the old one: what classes have in common cancels.
        said, says = (
            model.contributions[inside, now] - model.contributions[inside, was] for model in (batch.before, batch.after)
        )
        margins, biases = (
            [float(part[i, now] - part[i, was]) for part in parts]
            for parts in (
                (batch.before.logits, batch.after.logits),
                (batch.before.b_eff, batch.after.b_eff),
            )
        )
        moved = says - said
        listed = self.listed[batch.words[inside]]
        order = moved.argsort(descending=True, stable=True)
        order = order[listed[order]]
        shown, rest = order[: self.top], order[self.top :]
        words: list[int] = batch.words[inside[shown]].tolist()
        figures = torch.stack([said, says, moved], dim=1)[shown].tolist()
        return Flip(
            text=batch.texts[i],
            row=batch.rows[i],
            before=self.labels[was],
            after=self.labels[now],
            margin_before=margins[0],
            margin_after=margins[1],
            words=tuple(FlipWord(self.names[word], *values) for word, values in zip(words, figures, strict=True)),
            other_words=float(moved[rest].sum()),
            pieces=PieceSum.of(moved, torch.ones_like(listed), listed),
            bias=biases[1] - biases[0],
        )
