"""All metrics of an evaluation, in the order of `evaluation.json`.

To add one: write its file, list it here, and show it in `evaluation/views/`. Plug-ins call `register_metric`.
"""

from typing import Any

from lexical_sae.evaluation.metrics.attribution_methods import ATTRIBUTION_METHODS
from lexical_sae.evaluation.metrics.calibration import CALIBRATION
from lexical_sae.evaluation.metrics.completeness import COMPLETENESS
from lexical_sae.evaluation.metrics.context_use import CONTEXT_USE
from lexical_sae.evaluation.metrics.eraser import ERASER
from lexical_sae.evaluation.metrics.layerwise import LAYERS
from lexical_sae.evaluation.metrics.metric import Metric
from lexical_sae.evaluation.metrics.out_of_distribution import OUT_OF_DISTRIBUTION
from lexical_sae.evaluation.metrics.performance import PERFORMANCE
from lexical_sae.evaluation.metrics.probe_loss import PROBES
from lexical_sae.evaluation.metrics.removability import REMOVABILITY
from lexical_sae.evaluation.metrics.scaling_metrics import ABLATION_SPARSITY, DOWNSTREAM
from lexical_sae.evaluation.metrics.selective import SELECTIVE
from lexical_sae.evaluation.metrics.separation import SEPARATION
from lexical_sae.evaluation.metrics.stability import STABILITY
from lexical_sae.evaluation.metrics.task import TASK
from lexical_sae.evaluation.metrics.verification import VERIFICATION
from lexical_sae.evaluation.metrics.word_budget import WORD_BUDGET
from lexical_sae.utils.plugins import PluginError, load_plugins

METRICS: list[Metric[Any]] = [
    # How well the model decides.
    PERFORMANCE,
    TASK,
    CONTEXT_USE,
    CALIBRATION,
    SELECTIVE,
    WORD_BUDGET,
    # Whether its explanations are faithful.
    VERIFICATION,
    COMPLETENESS,
    ERASER,
    REMOVABILITY,
    OUT_OF_DISTRIBUTION,
    ATTRIBUTION_METHODS,
    # What its words are like.
    SEPARATION,
    STABILITY,
    ABLATION_SPARSITY,
    PROBES,
    DOWNSTREAM,
    LAYERS,
]


OTHER_METRICS: dict[str, Metric[Any]] = {}
"""Metrics of plug-ins, by key."""


def register_metric(metric: Metric[Any]) -> Metric[Any]:
    """Add a metric of one's own: it is measured with the others, and saved in `evaluation.json`.

    Args:
        metric: Made by `streamed` or `sampled`; its key must be new.
    """
    if any(metric.key == other.key for other in METRICS):
        raise PluginError(f"a metric called {metric.key!r} is built in; choose another key")
    OTHER_METRICS[metric.key] = metric
    return metric


def all_metrics() -> list[Metric[Any]]:
    """The metrics of this package, then those of plug-ins."""
    load_plugins()
    return [*METRICS, *OTHER_METRICS.values()]
