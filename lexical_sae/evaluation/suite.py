"""Every metric of a model on one split.

1. One pass reads every text; streamed metrics keep sums, never the texts' vectors.
2. What needs whole texts again (edits, skipped layers, texts without the gate, other explainers) is measured on a
   random sample.

Memory is bounded by the sample and the batch, not by the number of texts.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from lexical_sae.data.batches import tokenize
from lexical_sae.data.examples import TextSplit
from lexical_sae.evaluation.collect import Collector, ReadBatch, collect
from lexical_sae.evaluation.metrics.metric import Metric, Subject
from lexical_sae.evaluation.metrics.registry import all_metrics
from lexical_sae.evaluation.results import EvaluationResults
from lexical_sae.evaluation.settings import EvaluationSettings
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.outputs import OUTPUTS, Classes
from lexical_sae.utils.progress import OnStep, silent

Result = TypeVar("Result")


def evaluate(
    model: LexicalSAE,
    split: TextSplit,
    settings: EvaluationSettings = EvaluationSettings(),
    on_step: OnStep = silent,
) -> EvaluationResults:
    """The result of every metric on texts with their true labels.

    Args:
        model: The model to evaluate.
        split: Texts on which nothing was trained or chosen, with the places of their labels.
        settings: How much is measured.
        on_step: Receives progress.

    Returns:
        The results, by metric.

    Example: `evaluate(model, load_text_dataset("sst2").test).completeness.sizes[2].circuit.agreement`
    """
    model = model.opened_to(tokenize(model.tokenizer, split.texts, model.max_length).ids)
    subject, clock = Subject(model, settings, on_step), _Clock()
    kind = model.output.kind
    started = {metric.key: metric.start(subject) for metric in all_metrics() if kind in metric.outputs}
    skipped = {metric.key: _reason(metric, model) for metric in all_metrics() if kind not in metric.outputs}
    collectors = [_Timed(key, collector, clock) for key, collector in {**started, "sample": subject.sampler}.items()]
    count = clock.time(
        "reading", lambda: collect(model, split.texts, collectors, split.labels, settings.batch_size, on_step)
    )
    measured = {key: clock.time(key, measurement.result) for key, measurement in started.items()}
    return EvaluationResults(
        texts=count,
        labels=subject.labels,
        seed=settings.seed,
        measured=measured,
        seconds=clock.rounded(),
        # Which metrics other kinds have a model of classes need not be told.
        skipped={} if isinstance(model.output, Classes) else skipped,
    )


def _reason(metric: Metric[Any], model: LexicalSAE) -> str:
    """Why a metric is not measured."""
    defined = " or ".join(OUTPUTS[name].title for name in metric.outputs)
    return f"defined for {defined}, and this model has {model.output.title}"


class _Clock:
    """Wall time by part; a part may be entered many times."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def time(self, name: str, work: Callable[[], Result]) -> Result:
        """The result of the work, whose time is added to the part."""
        started = time.perf_counter()
        try:
            return work()
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started

    def rounded(self) -> dict[str, float]:
        """Seconds by part, for people."""
        return {name.replace("_", " "): round(seconds, 2) for name, seconds in self.seconds.items()}


@dataclass(frozen=True)
class _Timed:
    """A collector whose time is taken."""

    name: str
    collector: Collector
    clock: _Clock

    def update(self, batch: ReadBatch) -> None:
        self.clock.time(self.name, lambda: self.collector.update(batch))
