"""How good decisions about labels or numbers are: the figures of the model's output kind, and words per text."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from lexical_sae.evaluation.bootstrap import BootstrapMeans
from lexical_sae.evaluation.collect import ReadBatch
from lexical_sae.evaluation.intervals import Interval
from lexical_sae.evaluation.metrics.metric import Subject, streamed
from lexical_sae.mechanistic.attribution import code_identity_error, worst_gap
from lexical_sae.outputs import Figure, LabelFigures, Labels, Number, Scored


@dataclass(frozen=True)
class TaskResult:
    """The figures on these texts."""

    output: str
    """The kind."""
    figures: tuple[Figure, ...]
    per_label: tuple[LabelFigures, ...]
    active_words: Interval
    """Per text."""
    worst_identity_error: float
    """Worst relative gap between a logit and the sum of its contributions and bias."""


@dataclass
class TaskCollector:
    """Keeps the logits and labels of all texts: a few numbers each."""

    subject: Subject
    logits: list[Tensor] = field(default_factory=list)
    labels: list[Any] = field(default_factory=list)
    worst: float = 0.0

    def __post_init__(self) -> None:
        self.means = BootstrapMeans(seed=self.subject.seed)

    def update(self, batch: ReadBatch) -> None:
        """Add the decisions of a batch."""
        self.logits.append(batch.state.logits.float().cpu())
        self.labels += batch.labels
        self.means.update(batch.rows, {"active": batch.state.code.counts})
        self.worst = worst_gap(self.worst, float(code_identity_error(batch.state).max()))

    def result(self) -> TaskResult:
        """The figures of all texts so far."""
        output = self.subject.model.output
        assert isinstance(output, Scored), "the suite asks for this of such kinds alone"
        found = output.figures(torch.cat(self.logits), self.labels, self.subject.labels)
        return TaskResult(output.kind, found.figures, found.per_label, self.means["active"], self.worst)


TASK = streamed("task", TaskResult, TaskCollector, outputs=(Labels().kind, Number().kind))
