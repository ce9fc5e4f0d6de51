"""One label per text: a softmax over the classes."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from scipy.special import logsumexp
from torch import Tensor
from torch.nn.functional import cross_entropy, kl_div, one_hot

from lexical_sae.outputs.kind import Logits, OutputKind, Scalar, Shares, mean_of, weighted

FEW_LABELS = 4
"""With more classes than this, views show the runner-up."""


class Classes(OutputKind):
    """Every text has exactly one of several labels."""

    kind: Literal["classes"] = "classes"
    title: ClassVar = "one label per text"
    least_names: ClassVar = 2
    better: ClassVar = "right on more validation texts"

    def targets(self, labels: Sequence[Any]) -> Int[Tensor, " N"]:
        return torch.tensor(labels).long()

    def loss(
        self,
        logits: Logits,
        targets: Int[Tensor, " N"],
        weights: Float[Tensor, " N"] | None = None,
        smoothing: float = 0.0,
    ) -> Scalar:
        return weighted_cross_entropy(logits, targets, weights, smoothing)

    def imitation(self, teacher: Logits, pupil: Logits, weights: Float[Tensor, " N"] | None = None) -> Scalar:
        return completeness_kl(teacher, pupil, weights)

    def quality(self, logits: Logits, targets: Int[Tensor, " N"]) -> Bool[Tensor, " N"]:
        return logits.argmax(-1) == targets

    def statistics(
        self, targets: Int[Tensor, " N"], weights: Float[Tensor, " N"] | None, outputs: int
    ) -> Float[Tensor, " C"] | Int[Tensor, " C"]:
        return torch.bincount(targets, weights, minlength=outputs)

    def guessing_loss(self, statistics: Float[Tensor, " C"], smoothing: float = 0.0) -> float:
        return guessing_ce(statistics, smoothing)

    def text_losses(self, logits: Float[ndarray, "N C"], targets: Int[ndarray, " N"]) -> Float[ndarray, " N"]:
        return logsumexp(logits, axis=1) - logits[np.arange(len(targets)), targets]

    def table_loss(
        self, logits: Float[ndarray, "N C"], targets: Int[ndarray, " N"], shares: Shares
    ) -> tuple[float, Float[ndarray, "N C"]]:
        # By hand: scipy's function takes longer than all the rest where texts are few.
        below = logits - logits.max(1, keepdims=True)
        pull = np.exp(below)
        total = pull.sum(1, keepdims=True)
        value = mean_of(np.log(total[:, 0]) - below[np.arange(len(targets)), targets], shares)
        pull /= total
        pull[np.arange(len(targets)), targets] -= 1
        return value, weighted(pull, shares)

    def anchored(self, part: Float[ndarray, "*batch C"]) -> Float[ndarray, "*batch C"]:
        return part - part.mean(-1, keepdims=True)

    def probabilities(self, logits: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch C"]:
        return logits.softmax(-1)

    def decided(self, logits: Logits, names: Sequence[str]) -> list[str]:
        return [str(names[i]) for i in logits.argmax(-1).tolist()]

    def written(self, decision: str) -> str:
        return decision

    def labelled(self, labels: Sequence[Any], names: Sequence[str]) -> list[str]:
        return [names[int(label)] for label in labels]

    def told(self, probabilities: Sequence[float], target: int) -> float:
        """That of the most probable class, whichever is explained."""
        del target
        return max(probabilities)

    def confidence(self, target: str, probability: float | None, probabilities: Sequence[tuple[str, float]]) -> str:
        """With the runner-up where there are many classes and it is not 0%. Example: `93%`; `61%, then sports 22%`"""
        del target
        assert probability is not None
        share = f"{probability:.0%}"
        if len(probabilities) <= FEW_LABELS:
            return share
        label, second = runner_up(probabilities)
        return share if f"{second:.0%}" == "0%" else f"{share}, then {label} {second:.0%}"

    def surprise(self, logits: Logits, targets: Int[Tensor, " N"]) -> Scalar:
        return cross_entropy(logits, targets.long(), reduction="sum")

    def confidences(self, logits: Logits, targets: Int[Tensor, " N"]) -> tuple[Float[Tensor, " N"], Bool[Tensor, " N"]]:
        confidence, predicted = logits.softmax(-1).max(-1)
        return confidence, predicted == targets

    def default_target(self, logits: Logits, without: int | None) -> Int[Tensor, " N"]:
        if without is None:
            return logits.argmax(-1)
        others = logits.clone()
        others[:, without] = -torch.inf
        return others.argmax(-1)

    def direction(self, logits: Logits, targets: Int[Tensor, " N"]) -> Logits:
        """Against the mean of all: what moves every logit alike changes no probability."""
        return one_hot(targets, logits.shape[-1]).to(logits.dtype) - 1 / logits.shape[-1]

    def weights(self, rows: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch C"]:
        return rows - rows.mean(-1, keepdim=True)


def runner_up(probabilities: Sequence[tuple[str, float]]) -> tuple[str, float]:
    """The second most probable label with its probability."""
    return sorted(probabilities, key=lambda pair: -pair[1])[1]


def weighted_cross_entropy(
    logits: Float[Tensor, "N C"],
    labels: Int[Tensor, " N"],
    weights: Float[Tensor, " N"] | None = None,
    label_smoothing: float = 0.0,
) -> Scalar:
    """Mean over the samples of weight times cross-entropy; without weights, the mean cross-entropy."""
    if weights is None:
        return cross_entropy(logits, labels, label_smoothing=label_smoothing)
    return (weights * cross_entropy(logits, labels, label_smoothing=label_smoothing, reduction="none")).mean()


def completeness_kl(
    full_logits: Float[Tensor, "N C"], masked_logits: Float[Tensor, "N C"], weights: Float[Tensor, " N"] | None = None
) -> Scalar:
    """`KL(full || circuit)`: how far the circuit's decision is from the whole model's, which does not learn from it.

    With weights, each sample counts that many times.
    """
    full, masked = full_logits.detach().log_softmax(-1), masked_logits.log_softmax(-1)
    if weights is None:
        return kl_div(masked, full, reduction="batchmean", log_target=True)
    return (weights * kl_div(masked, full, reduction="none", log_target=True).sum(-1)).mean()


def guessing_ce(label_counts: Float[Tensor, " C"], smoothing: float = 0.0) -> float:
    """Summed cross-entropy of samples with the constant prediction that fits them best: their mean (smoothed) label.

    No constant prediction has less (Gibbs' inequality), and without an active word every prediction is constant.

    Example: 5 samples of each of 4 classes -> 20 ln 4
    """
    total = label_counts.sum()
    smoothed = (1 - smoothing) * label_counts + smoothing * total / len(label_counts)
    return float(torch.special.entr(smoothed / total).sum() * total) if total else 0.0
