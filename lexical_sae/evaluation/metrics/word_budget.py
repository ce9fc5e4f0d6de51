"""Accuracy against the number of words: the same model, allowed only the strongest k words of each text."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from lexical_sae.evaluation.bootstrap import BootstrapMeans
from lexical_sae.evaluation.collect import ReadBatch
from lexical_sae.evaluation.intervals import Interval
from lexical_sae.evaluation.metrics.metric import streamed
from lexical_sae.mechanistic.exact import Head

MOST_WORDS = (1, 2, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class FrontierPoint:
    """The model limited to a number of words per text."""

    most_words: int
    active_words: Interval
    accuracy: Interval
    agreement: Interval
    """Share of texts with the same label as from all words."""


class FrontierCollector:
    """Decides again from each text's most active words in the sparse layer; no label is used."""

    def __init__(self, head: Head, most_words: Sequence[int] = MOST_WORDS, seed: int = 0) -> None:
        self.head, self.most_words = head, tuple(most_words)
        self.means = BootstrapMeans(seed=seed)

    @torch.no_grad()
    def update(self, batch: ReadBatch) -> None:
        """Decide on a batch, whose classes are the true ones."""
        figures = {}
        for most in self.most_words:
            code = batch.state.code.keep_strongest(most)
            label = self.head.read(code).logits.argmax(-1)
            figures |= {f"{most} words": code.counts, f"{most} right": label == batch.classes}
            figures[f"{most} same"] = label == batch.predicted
        self.means.update(batch.rows, figures)

    def result(self) -> tuple[FrontierPoint, ...]:
        """The points so far."""
        return tuple(
            FrontierPoint(k, self.means[f"{k} words"], self.means.share(f"{k} right"), self.means.share(f"{k} same"))
            for k in self.most_words
        )


WORD_BUDGET = streamed("frontier", tuple[FrontierPoint, ...], lambda of: FrontierCollector(of.head, seed=of.seed))
