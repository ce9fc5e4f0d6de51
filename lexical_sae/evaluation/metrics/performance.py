"""How often the model is right, beside always predicting the commonest label, and how many words it needs."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from lexical_sae.evaluation.bootstrap import BootstrapMeans
from lexical_sae.evaluation.collect import ReadBatch
from lexical_sae.evaluation.intervals import Interval
from lexical_sae.evaluation.metrics.metric import streamed


@dataclass(frozen=True)
class ClassScores:
    """How well one class is found; None where nothing was given or predicted as that class."""

    label: str
    texts: int
    precision: float | None
    recall: float | None
    f1: float | None


@dataclass(frozen=True)
class Performance:
    """Scores of the model's decisions."""

    accuracy: Interval
    majority: float
    """Accuracy of always predicting the commonest label."""
    macro_f1: float | None
    """Mean F1 of the classes that occur."""
    classes: tuple[ClassScores, ...]
    active_words: Interval
    """Per text."""
    texts_without_words: int
    texts_at_limit: int
    """Texts that fill all the tokens the model reads: nearly all of them were cut."""


class PerformanceCollector:
    """Counts decisions by true and predicted class."""

    def __init__(self, labels: Sequence[str], max_length: int, seed: int = 0) -> None:
        self.labels, self.max_length = labels, max_length
        self.means = BootstrapMeans(seed=seed)
        self.confusion = torch.zeros(len(labels), len(labels), dtype=torch.long)
        self.without_words = self.at_limit = 0

    def update(self, batch: ReadBatch) -> None:
        """Add the decisions of a batch, whose classes are the true ones."""
        counts = batch.state.code.counts
        pairs = batch.classes * len(self.labels) + batch.predicted
        self.confusion += pairs.bincount(minlength=self.confusion.numel()).reshape(self.confusion.shape).cpu()
        self.means.update(batch.rows, {"right": batch.predicted == batch.classes, "active": counts})
        self.without_words += int((counts == 0).sum())
        self.at_limit += sum(len(ids) >= self.max_length for ids in batch.token_ids)

    def result(self) -> Performance:
        """All scores so far."""
        found = self.confusion.diagonal().tolist()
        true, predicted = self.confusion.sum(1).tolist(), self.confusion.sum(0).tolist()
        classes = tuple(
            ClassScores(
                label,
                true[i],
                _share(found[i], predicted[i]),
                _share(found[i], true[i]),
                _share(2 * found[i], true[i] + predicted[i]),
            )
            for i, label in enumerate(self.labels)
        )
        f1 = [own.f1 for own in classes if own.texts and own.f1 is not None]
        return Performance(
            accuracy=self.means.share("right"),
            majority=max(true) / max(1, sum(true)),
            macro_f1=sum(f1) / len(f1) if f1 else None,
            classes=classes,
            active_words=self.means["active"],
            texts_without_words=self.without_words,
            texts_at_limit=self.at_limit,
        )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


PERFORMANCE = streamed(
    "performance", Performance, lambda of: PerformanceCollector(of.labels, of.model.max_length, of.seed)
)
