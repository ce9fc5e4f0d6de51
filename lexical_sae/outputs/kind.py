"""What all output kinds answer."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from numpy import ndarray
from torch import Tensor

from lexical_sae.outputs.figures import Measure, TaskScores
from lexical_sae.utils.part import PartConfig

Scalar = Float[Tensor, ""]
Targets = Shaped[Tensor, "N ..."]
"""What is to be learned, per sample: a class, a 0 or 1 per label, or a number in units of the logit."""
Logits = Float[Tensor, "N C"]
Shares = Float[ndarray, " N"] | None
"""Weights of texts as shares of their sum; None where all count the same."""

Kind = TypeVar("Kind", bound="OutputKind")


class OutputKind(PartConfig):
    """What a model puts out for a text. Frozen, and saved with the model."""

    kind: Any
    title: ClassVar[str]
    """What texts have, for messages. Example: "one label per text" """
    least_names: ClassVar[int]
    """How many outputs there are at least."""
    is_choice: ClassVar[bool] = True
    """Whether labels are decided on, with probabilities; a removal may then change the decision."""
    logit_unit: ClassVar[str] = " in logits"
    """What contributions are in, for sentences."""
    better: ClassVar[str]
    """What an epoch is that is kept for its `quality`. Example: "right on more validation texts" """

    def fitted(self: Kind, labels: Sequence[Any]) -> Kind:
        """This kind for the labels of some training texts; only what it takes from them differs."""
        del labels
        return self

    def tuned(self: Kind, logits: Callable[[], Logits], labels: Sequence[Any]) -> Kind:
        """This kind with what is chosen on validation texts, whose logits are asked for only if there is something."""
        del logits, labels
        return self

    # What is learned.

    @abstractmethod
    def targets(self, labels: Sequence[Any]) -> Targets:
        """The labels of a split as the loss wants them."""

    @abstractmethod
    def loss(
        self, logits: Logits, targets: Targets, weights: Float[Tensor, " N"] | None = None, smoothing: float = 0.0
    ) -> Scalar:
        """Mean loss of the samples, each times its weight; `smoothing` is that of labels."""

    @abstractmethod
    def imitation(self, teacher: Logits, pupil: Logits, weights: Float[Tensor, " N"] | None = None) -> Scalar:
        """How far the pupil's decisions are from those of the teacher, which does not learn from it."""

    @abstractmethod
    def quality(self, logits: Logits, targets: Targets) -> Shaped[Tensor, " N"]:
        """How good each decision is: epochs are compared by its mean, and named `accuracy` by it."""

    @abstractmethod
    def statistics(self, targets: Targets, weights: Float[Tensor, " N"] | None, outputs: int) -> Shaped[Tensor, " S"]:
        """What of some targets the best constant prediction depends on; adds up over batches."""

    @abstractmethod
    def guessing_loss(self, statistics: Float[Tensor, " S"], smoothing: float = 0.0) -> float:
        """Summed loss of all samples with the constant prediction that fits them best."""

    # The table of words, in numpy.

    @abstractmethod
    def text_losses(self, logits: Float[ndarray, "N C"], targets: Shaped[ndarray, "N ..."]) -> Float[ndarray, " N"]:
        """The loss of each text."""

    @abstractmethod
    def table_loss(
        self, logits: Float[ndarray, "N C"], targets: Shaped[ndarray, "N ..."], shares: Shares
    ) -> tuple[float, Float[ndarray, "N C"]]:
        """The mean loss, and its gradient."""

    def anchored(self, part: Float[ndarray, "*batch C"]) -> Float[ndarray, "*batch C"]:
        """Rows or biases of a table with what no decision depends on taken out."""
        return part

    # What is decided.

    @abstractmethod
    def probabilities(self, logits: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch C"]:
        """The probabilities of the labels, from calibrated logits; refused where there are none."""

    @abstractmethod
    def decided(self, logits: Logits, names: Sequence[str]) -> list[Any]:
        """The decision on each text, as plain data: a label, a tuple of labels, or a number."""

    @abstractmethod
    def written(self, decision: Any) -> str:
        """A decision for people. Example: ("insult", "threat") -> "insult, threat" """

    @abstractmethod
    def labelled(self, labels: Sequence[Any], names: Sequence[str]) -> list[str]:
        """The true labels of a split for people, written like decisions."""

    @abstractmethod
    def told(self, probabilities: Sequence[float], target: int) -> float | None:
        """The probability that goes with an explanation of this output."""

    @abstractmethod
    def confidence(self, target: str, probability: float | None, probabilities: Sequence[tuple[str, float]]) -> str:
        """How sure the decision is, in the words that stand beside it."""

    def surprise(self, logits: Logits, targets: Targets) -> Scalar | None:
        """Minus the summed log probability of the targets, which a temperature makes least; None without one."""
        del logits, targets
        return None

    def confidences(self, logits: Logits, targets: Targets) -> tuple[Float[Tensor, " N"], Shaped[Tensor, " N"]] | None:
        """How sure each decision is, from calibrated logits, and whether it is right; None where abstaining is not
        for this kind."""
        del logits, targets
        return None

    # What is explained.

    @abstractmethod
    def default_target(self, logits: Logits, without: int | None) -> Int[Tensor, " N"]:
        """The output that is explained where none was asked for; never the one to leave out."""

    @abstractmethod
    def direction(self, logits: Logits, targets: Int[Tensor, " N"]) -> Logits:
        """What is explained, as weights on the logits."""

    def offset(self) -> float:
        """What is explained beyond the direction: a constant, part of the bias."""
        return 0.0

    def sides(self, names: Sequence[str]) -> list[tuple[str, int, int]]:
        """What words may speak for: its title, the column of the table, and the sign. By default every output."""
        return [(name, column, 1) for column, name in enumerate(names)]

    @abstractmethod
    def weights(self, rows: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch C"]:
        """Rows of a table as people read them."""


class Scored(OutputKind):
    """A kind with figures of its own; those of classes are the accuracy and what the evaluation suite measures."""

    keys: ClassVar[tuple[str, ...]]
    """Figures that models and baselines are compared by, the most important first."""

    @abstractmethod
    def figures(self, logits: Logits, labels: Sequence[Any], names: Sequence[str]) -> TaskScores:
        """How good decisions are on texts with these labels."""

    @abstractmethod
    def measure(self, logits: Logits, labels: Sequence[Any]) -> Measure:
        """The same figures of resampled texts, to compare two by."""


def mean_of(values: Float[ndarray, " N"], shares: Shares) -> float:
    """The mean of some values, by their shares if they have any."""
    return float(values.mean() if shares is None else values @ shares)


def weighted(pull: Float[ndarray, "N C"], shares: Shares) -> Float[ndarray, "N C"]:
    """The gradient of each text's loss as part of the gradient of their mean; changes it in place."""
    if shares is None:
        pull /= len(pull)
    else:
        pull *= shares[:, None]
    return pull


def weighted_mean(losses: Float[Tensor, " N"], weights: Float[Tensor, " N"] | None) -> Scalar:
    """Mean over samples of weight times loss."""
    return (losses if weights is None else weights * losses).mean()


def as_doubles(logits: Tensor) -> np.ndarray:
    """On the CPU in double precision, for figures."""
    return logits.detach().to("cpu", torch.float64).numpy()
