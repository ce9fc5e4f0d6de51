"""How often the model is right if it may leave the texts with the least confidence undecided, and how often it warns.

Coverage is the share of texts that it decides on. The area under the risk–coverage curve (AURC) is the mean error rate
over all coverages; the error rate itself where confidence says nothing.
"""

from collections import Counter
from dataclasses import dataclass

import torch

from lexical_sae.evaluation.collect import ReadBatch
from lexical_sae.evaluation.metrics.metric import streamed
from lexical_sae.inference.unusual import unusual
from lexical_sae.models.calibration import Calibration

REFERENCE = "Geifman and El-Yaniv 2017, arXiv:1705.08500"
COVERAGES = (1.0, 0.9, 0.8, 0.7, 0.5)


@dataclass(frozen=True)
class CoveragePoint:
    """The decisions of greatest confidence."""

    coverage: float
    texts: int
    least_confidence: float
    accuracy: float


@dataclass(frozen=True)
class SelectiveResult:
    """Accuracy by coverage, and warnings."""

    points: tuple[CoveragePoint, ...]
    aurc: float
    error: float
    """At full coverage: the AURC of a confidence that says nothing."""
    warned: float
    """Share of texts with a warning."""
    warnings: dict[str, float]
    """The same by kind; a text may have several."""
    is_calibrated: bool
    """Whether the model has what all kinds of warnings need."""


class SelectiveCollector:
    """Keeps confidence and correctness of each text, and counts warnings; classes are the true ones."""

    def __init__(self, calibration: Calibration | None) -> None:
        self.calibration = calibration
        self.confidence: list[float] = []
        self.is_right: list[bool] = []
        self.kinds: Counter[str] = Counter()
        self.warned = 0

    def update(self, batch: ReadBatch) -> None:
        """Add the decisions of a batch."""
        temperature = self.calibration.figures.temperature if self.calibration else 1.0
        self.confidence += (batch.state.logits / temperature).softmax(-1).amax(-1).tolist()
        self.is_right += (batch.predicted == batch.classes).tolist()
        found = unusual(self.calibration, batch)
        self.warned += sum(map(bool, found))
        self.kinds.update(warning.kind for warnings in found for warning in warnings)

    def result(self) -> SelectiveResult:
        """All decisions so far."""
        confidence = torch.tensor(self.confidence, dtype=torch.float64)
        order = confidence.argsort(descending=True, stable=True)
        right = torch.tensor(self.is_right, dtype=torch.float64)[order]
        count = len(right)
        accuracy = right.cumsum(0) / torch.arange(1, count + 1)
        sizes = [max(1, round(coverage * count)) for coverage in COVERAGES]
        points = [
            CoveragePoint(coverage, size, float(confidence[order[size - 1]]), float(accuracy[size - 1]))
            for coverage, size in zip(COVERAGES, sizes, strict=True)
        ]
        return SelectiveResult(
            points=tuple(points),
            aurc=float((1 - accuracy).mean()),
            error=float(1 - accuracy[-1]),
            warned=self.warned / count,
            warnings={kind: number / count for kind, number in sorted(self.kinds.items())},
            is_calibrated=self.calibration is not None,
        )


SELECTIVE = streamed("selective", SelectiveResult, lambda of: SelectiveCollector(of.model.calibration))
