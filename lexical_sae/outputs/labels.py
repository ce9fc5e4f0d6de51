"""Any number of labels per text: a sigmoid and a threshold for each, independent of the others.

Labels are not smoothed: where one label in a hundred texts is true, the mean of nothing known is not a half.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from scipy.special import expit
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, one_hot

from lexical_sae.outputs.figures import Measure, TaskScores, label_measure, label_scores
from lexical_sae.outputs.kind import Logits, Scalar, Scored, Shares, as_doubles, mean_of, weighted, weighted_mean
from lexical_sae.utils.errors import DataError

NONE = "none"
"""What is shown for a text without any label."""
FEWEST = 5
"""Validation texts with a label, and without it, from which on its threshold is chosen."""


class Labels(Scored):
    """Every text has any of several labels, or none."""

    kind: Literal["labels"] = "labels"
    thresholds: tuple[float, ...] = ()
    """Logit of each label from which on it is decided for; empty before they are chosen, which means 0."""
    title: ClassVar = "any number of labels per text"
    least_names: ClassVar = 1
    better: ClassVar = "right about more labels of validation texts"
    keys: ClassVar = ("macro_f1", "micro_f1", "exact_match")

    def fitted(self, labels: Sequence[Any]) -> "Labels":
        marks = np.asarray(labels)
        if (marks == marks[:1]).all():
            raise DataError(f"all {len(marks)} training texts have the same labels; there is nothing to learn")
        return self

    def tuned(self, logits: Callable[[], Logits], labels: Sequence[Any]) -> "Labels":
        """With the threshold of each label that gives it the best F1 on validation texts."""
        found, gold = as_doubles(logits()), np.asarray(labels, dtype=bool)
        chosen = tuple(best_threshold(found[:, i], gold[:, i]) for i in range(gold.shape[1]))
        return self.model_copy(update={"thresholds": chosen})

    def targets(self, labels: Sequence[Any]) -> Float[Tensor, "N L"]:
        return torch.tensor(labels, dtype=torch.float32)

    def loss(
        self,
        logits: Logits,
        targets: Float[Tensor, "N C"],
        weights: Float[Tensor, " N"] | None = None,
        smoothing: float = 0.0,
    ) -> Scalar:
        """Sum over the labels of their cross-entropies."""
        del smoothing
        losses = binary_cross_entropy_with_logits(logits, targets.to(logits.dtype), reduction="none")
        return weighted_mean(losses.sum(-1), weights)

    def imitation(self, teacher: Logits, pupil: Logits, weights: Float[Tensor, " N"] | None = None) -> Scalar:
        taught = teacher.detach().sigmoid()
        cross = binary_cross_entropy_with_logits(pupil, taught, reduction="none")
        own = torch.special.entr(taught) + torch.special.entr(1 - taught)
        return weighted_mean((cross - own).sum(-1), weights)

    def quality(self, logits: Logits, targets: Float[Tensor, "N C"]) -> Float[Tensor, " N"]:
        """Share of the labels that are decided rightly; thresholds are not chosen yet."""
        return ((logits > 0) == (targets > 0)).to(torch.float32).mean(-1)

    def statistics(
        self, targets: Float[Tensor, "N C"], weights: Float[Tensor, " N"] | None, outputs: int
    ) -> Float[Tensor, " S"]:
        """How many samples have each label, and how many samples there are."""
        del outputs
        counts = torch.ones(len(targets), 1) if weights is None else weights[:, None]
        return torch.cat([counts * targets, counts], dim=1).sum(0)

    def guessing_loss(self, statistics: Float[Tensor, " S"], smoothing: float = 0.0) -> float:
        del smoothing
        total = statistics[-1]
        if not total:
            return 0.0
        share = statistics[:-1] / total
        return float((torch.special.entr(share) + torch.special.entr(1 - share)).sum() * total)

    def text_losses(self, logits: Float[ndarray, "N C"], targets: Float[ndarray, "N C"]) -> Float[ndarray, " N"]:
        return (np.logaddexp(0, logits) - targets * logits).sum(1)

    def table_loss(
        self, logits: Float[ndarray, "N C"], targets: Float[ndarray, "N C"], shares: Shares
    ) -> tuple[float, Float[ndarray, "N C"]]:
        return mean_of(self.text_losses(logits, targets), shares), weighted(expit(logits) - targets, shares)

    def probabilities(self, logits: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch C"]:
        return logits.sigmoid()

    def margins(self, logits: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch C"]:
        """How far each label's logit is above its threshold."""
        return logits - logits.new_tensor(self.thresholds) if self.thresholds else logits

    def chosen(self, logits: Float[Tensor, "*batch C"]) -> Bool[Tensor, "*batch C"]:
        """Which labels are decided for."""
        return self.margins(logits) > 0

    def decided(self, logits: Logits, names: Sequence[str]) -> list[tuple[str, ...]]:
        rows = self.chosen(logits).tolist()
        return [tuple(name for name, is_it in zip(names, row, strict=True) if is_it) for row in rows]

    def written(self, decision: tuple[str, ...]) -> str:
        return ", ".join(decision) or NONE

    def labelled(self, labels: Sequence[Any], names: Sequence[str]) -> list[str]:
        return [self.written(tuple(n for n, is_it in zip(names, row, strict=True) if is_it)) for row in labels]

    def told(self, probabilities: Sequence[float], target: int) -> float:
        return probabilities[target]

    def confidence(self, target: str, probability: float | None, probabilities: Sequence[tuple[str, float]]) -> str:
        """That of the label that is explained. Example: `insult 93%`"""
        del probabilities
        assert probability is not None
        return f"{target} {probability:.0%}"

    def surprise(self, logits: Logits, targets: Float[Tensor, "N C"]) -> Scalar:
        return binary_cross_entropy_with_logits(logits, targets.to(logits.dtype), reduction="sum")

    def default_target(self, logits: Logits, without: int | None) -> Int[Tensor, " N"]:
        """The label that is furthest above its threshold, or least below it."""
        assert without is None, "labels are not contrasted"
        return self.margins(logits).argmax(-1)

    def direction(self, logits: Logits, targets: Int[Tensor, " N"]) -> Logits:
        """The label's own logit."""
        return one_hot(targets, logits.shape[-1]).to(logits.dtype)

    def weights(self, rows: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch C"]:
        return rows

    def figures(self, logits: Logits, labels: Sequence[Any], names: Sequence[str]) -> TaskScores:
        thresholds = self.thresholds or (0.0,) * len(names)
        return label_scores(self.chosen(logits).cpu().numpy(), np.asarray(labels, dtype=bool), names, thresholds)

    def measure(self, logits: Logits, labels: Sequence[Any]) -> Measure:
        return label_measure(self.chosen(logits).cpu().numpy(), np.asarray(labels, dtype=bool))


def best_threshold(logits: Float[ndarray, " N"], gold: Bool[ndarray, " N"]) -> float:
    """The logit above which deciding for a label gives it the best F1; of equally good ones the nearest to 0.

    0, a probability of a half, where too few texts have the label, or lack it, to choose.

    Example: logits -3 -2 -1 0 with the last two labelled -> -1.5
    """
    if min(gold.sum(), (~gold).sum()) < FEWEST:
        return 0.0
    ordered = np.unique(logits)
    cuts = np.concatenate([[ordered[0] - 1.0], (ordered[1:] + ordered[:-1]) / 2, [0.0]])
    above = np.sort(logits), np.sort(logits[gold])
    named, hits = (len(values) - np.searchsorted(values, cuts, side="right") for values in above)
    f1 = 2 * hits / (named + gold.sum())
    best = np.flatnonzero(f1 == f1.max())
    return float(cuts[best[np.abs(cuts[best]).argmin()]])
