"""What an evaluation leaves: plain, frozen data with intervals, behind `evaluation.json` and every view."""

from dataclasses import asdict, dataclass
from typing import Any

from splade.evaluation.arena.results import ArenaResults
from splade.evaluation.calibration import CalibrationResult
from splade.evaluation.completeness import CompletenessResult
from splade.evaluation.context.streamed import ContextUse
from splade.evaluation.eraser import EraserResult
from splade.evaluation.frontier import FrontierPoint
from splade.evaluation.layerwise import LayerwiseResult
from splade.evaluation.masking_check import MaskingResult
from splade.evaluation.performance import Performance
from splade.evaluation.probe_loss import ProbeResult
from splade.evaluation.removability import RemovabilityResult
from splade.evaluation.scaling_metrics import AblationSparsity, DownstreamLoss
from splade.evaluation.selective import SelectiveResult
from splade.evaluation.separation import SeparationResult
from splade.evaluation.stability import StabilityResult
from splade.evaluation.verification import Verification

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class EvaluationResults:
    """Everything measured of a model on one split. None stands where there were too few texts to tell."""

    texts: int
    labels: tuple[str, ...]
    seed: int
    # How well it decides.
    performance: Performance
    context: ContextUse | None
    """None but for literal words: only their activations have a default."""
    calibration: CalibrationResult
    frontier: tuple[FrontierPoint, ...]
    # Whether its explanations are true.
    verification: Verification
    completeness: CompletenessResult
    eraser: EraserResult
    removability: RemovabilityResult
    masking: MaskingResult | None
    explainers: ArenaResults | None
    """Attribution methods compared on a few texts."""
    # What its words are like.
    separation: SeparationResult
    stability: StabilityResult
    ablation_sparsity: AblationSparsity
    probes: ProbeResult | None
    downstream: DownstreamLoss
    layers: LayerwiseResult | None
    """None for a table of words, which asks no encoder."""
    seconds: dict[str, float]
    """Wall time of each part; `reading` is the pass that all collectors share."""
    selective: SelectiveResult | None = None
    """Accuracy by coverage, and warnings about unusual texts."""
    schema_version: int = SCHEMA_VERSION

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)
