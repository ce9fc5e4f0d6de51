"""Calibration: of the decisions made with 80 % confidence, are 80 % right?

The expected calibration error (ECE) is the mean gap between confidence and accuracy over bins of confidence. It is
never negative, so it is above zero even for a perfectly calibrated model on few texts. That chance level, from labels
drawn with the model's own confidences, stands beside it.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lexical_sae.evaluation.bootstrap import BootstrapMeans
from lexical_sae.evaluation.collect import ReadBatch
from lexical_sae.evaluation.intervals import Interval
from lexical_sae.evaluation.metrics.metric import streamed

REFERENCE = "Guo et al. 2017, arXiv:1706.04599"
BINS = 15
CHANCE_DRAWS = 200
"""Times that labels are drawn from the confidences."""


@dataclass(frozen=True)
class ReliabilityBin:
    """Decisions of similar confidence: a point of the reliability curve."""

    low: float
    high: float
    texts: int
    confidence: float
    """Mean probability of the predicted class."""
    accuracy: Interval


@dataclass(frozen=True)
class CalibrationResult:
    """How far confidence and accuracy lie apart."""

    ece: Interval
    """The interval is of resampled texts; like the figure itself it leans upwards when texts are few."""
    ece_by_chance: float
    """Mean ECE of a perfectly calibrated model with the same confidences on as many texts."""
    ece_by_chance_high: float
    """The ECE that such a model exceeds in one case of twenty."""
    overconfidence: Interval
    """Mean confidence minus accuracy."""
    brier: Interval
    """Sum of squared gaps between probabilities and the true class: 0 is perfect, 2 the worst."""
    log_loss: Interval
    """Mean -log probability of the true class, in nats."""
    curve: tuple[ReliabilityBin, ...]
    """Bins that hold texts, by confidence."""
    temperature: float = 1.0
    """What logits were divided by."""
    ece_before: Interval | None = None
    """The ECE at a temperature of 1; None in older evaluations."""


class CalibrationCollector:
    """Sums confidence and accuracy per bin; the batches' classes are the true ones."""

    def __init__(self, seed: int = 0, bins: int = BINS, temperature: float = 1.0) -> None:
        self.bins, self.seed, self.temperature = bins, seed, temperature
        self.means = BootstrapMeans(seed=seed)
        self.texts = 0
        self.bin_texts = np.zeros(bins, dtype=int)
        self.bin_confidence = np.zeros(bins)
        self.chance_gaps = np.zeros((bins, CHANCE_DRAWS))

    def update(self, batch: ReadBatch) -> None:
        """Add the decisions of a batch."""
        raw = batch.state.logits.double().cpu()
        logits = raw / self.temperature
        classes = batch.classes.cpu()
        probabilities, truth = logits.softmax(-1), torch.nn.functional.one_hot(classes, logits.shape[-1])
        confidence, predicted = probabilities.max(-1)
        right = (predicted == classes).double()
        place = self._places(confidence)
        before = raw.softmax(-1).amax(-1)
        place_before = self._places(before)
        figures = {
            "overconfidence": confidence - right,
            "brier": (probabilities - truth).square().sum(-1),
            "log loss": -logits.log_softmax(-1).gather(1, classes[:, None]).squeeze(1),
        }
        for i in range(self.bins):
            figures[f"gap {i}"] = (confidence - right).where(place == i, 0.0)
            figures[f"right {i}"] = right.where(place == i, torch.nan)
            figures[f"gap before {i}"] = (before - right).where(place_before == i, 0.0)
        self.means.update(batch.rows, figures)
        self.texts += len(batch.rows)
        np.add.at(self.bin_texts, place.numpy(), 1)
        np.add.at(self.bin_confidence, place.numpy(), confidence.numpy())
        np.add.at(self.chance_gaps, place.numpy(), self._chance_gaps(batch, confidence.numpy()))

    def result(self) -> CalibrationResult:
        """All decisions so far."""
        chance = np.abs(self.chance_gaps).sum(0) / max(1, self.texts)
        return CalibrationResult(
            ece=self._error("gap"),
            ece_by_chance=float(chance.mean()),
            ece_by_chance_high=float(np.quantile(chance, 0.95)),
            overconfidence=self.means["overconfidence"],
            brier=self.means["brier"],
            log_loss=self.means["log loss"],
            curve=tuple(self._bin(i) for i in range(self.bins) if self.bin_texts[i]),
            temperature=self.temperature,
            ece_before=self._error("gap before"),
        )

    def _places(self, confidence: Float[Tensor, " B"]) -> Int[Tensor, " B"]:
        """The bin of each confidence: (low, high], so that full confidence falls into the last."""
        return (confidence * self.bins).ceil().long().clamp(1, self.bins) - 1

    def _error(self, gap: str) -> Interval:
        """The expected calibration error from the gaps of all bins."""
        return self.means.combined([f"{gap} {i}" for i in range(self.bins)], lambda means: np.abs(means).sum(1))

    def _bin(self, i: int) -> ReliabilityBin:
        count = int(self.bin_texts[i])
        confidence = float(self.bin_confidence[i]) / count
        return ReliabilityBin(i / self.bins, (i + 1) / self.bins, count, confidence, self.means.share(f"right {i}"))

    def _chance_gaps(self, batch: ReadBatch, confidence: np.ndarray) -> np.ndarray:
        """Confidence minus a drawn right or wrong, per text and draw."""
        uniform = np.stack([np.random.default_rng([self.seed, 1, row]).random(CHANCE_DRAWS) for row in batch.rows])
        return confidence[:, None] - (uniform < confidence[:, None])


CALIBRATION = streamed(
    "calibration", CalibrationResult, lambda of: CalibrationCollector(of.seed, temperature=of.model.temperature)
)
