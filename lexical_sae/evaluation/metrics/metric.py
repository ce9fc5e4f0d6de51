"""What a metric is: a key in `evaluation.json`, the type of its result, and how it is measured.

Each file of this folder defines its result (a frozen dataclass), how it is measured, and a `Metric` that names both;
`registry.METRICS` lists them. `streamed` metrics see every batch of the corpus, `sampled` ones a random sample of it
after the pass.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from lexical_sae.evaluation.circuit_words import Rankings
from lexical_sae.evaluation.collect import ReadBatch
from lexical_sae.evaluation.settings import EvaluationSettings
from lexical_sae.evaluation.text_sample import TextSample, TextSampler
from lexical_sae.inference.labels import names_of
from lexical_sae.mechanistic.exact import Head
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.outputs import CLASSES
from lexical_sae.utils.progress import OnStep, silent

Result = TypeVar("Result")
ResultOut = TypeVar("ResultOut", covariant=True)


@dataclass(frozen=True)
class Subject:
    """The model under evaluation, and what its metrics share."""

    model: LexicalSAE
    settings: EvaluationSettings = field(default_factory=EvaluationSettings)
    on_step: OnStep = silent

    @property
    def seed(self) -> int:
        """Seed of everything that is sampled at random."""
        return self.settings.seed

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The model's labels, in the order of its classes."""
        return names_of(self.model)

    @cached_property
    def head(self) -> Head:
        """The head that decides."""
        return self.model.head()

    @cached_property
    def rankings(self) -> Rankings:
        """Orders of each batch's words, computed once for all metrics."""
        return Rankings(self.head, self.seed)

    @cached_property
    def sampler(self) -> TextSampler:
        """Collects the sample while the corpus is read."""
        return TextSampler(self.settings.sample_texts, self.seed)

    @cached_property
    def sample(self) -> TextSample:
        """A random sample of the corpus; complete only after the whole corpus has been read."""
        return self.sampler.sample()


@runtime_checkable
class Measurement(Protocol[ResultOut]):
    """A metric at work on one corpus."""

    def update(self, batch: ReadBatch) -> None: ...

    def result(self) -> ResultOut: ...


@dataclass(frozen=True)
class Metric(Generic[ResultOut]):
    """One metric of an evaluation; make one with `streamed` or `sampled`."""

    key: str
    """Its name in `evaluation.json` and as an attribute of the results."""
    result_type: Any
    """Type of the result, by which a file is read back."""
    start: Callable[[Subject], Measurement[ResultOut]]
    outputs: tuple[str, ...] = (CLASSES.kind,)
    """Output kinds that it is defined for; for others it is skipped, with the reason."""


def streamed(
    key: str,
    result_type: Any,
    collector: Callable[[Subject], Measurement[Result]],
    outputs: tuple[str, ...] = (CLASSES.kind,),
) -> Metric[Result]:
    """A metric whose collector sees every batch of the corpus.

    Args:
        key: Its name in `evaluation.json`.
        result_type: Type of the result.
        collector: Makes an object with `update(batch)` and `result()` for a subject.
        outputs: Output kinds that it is defined for.

    Returns:
        The metric, to be listed in `registry.METRICS`.
    """
    return Metric(key, result_type, collector, outputs)


def sampled(key: str, result_type: Any, measure: Callable[[Subject], Result]) -> Metric[Result]:
    """A metric that needs whole texts again, measured on `subject.sample` after the corpus has been read.

    Args:
        key: Its name in `evaluation.json`.
        result_type: Type of the result.
        measure: Computes the result.

    Returns:
        The metric, to be listed in `registry.METRICS`.
    """
    return Metric(key, result_type, lambda subject: _AfterReading(subject, measure))


@dataclass(frozen=True)
class _AfterReading(Generic[Result]):
    """Measured when the sample is complete."""

    subject: Subject
    measure: Callable[[Subject], Result]

    def update(self, batch: ReadBatch) -> None:
        """The subject's sampler already sees every batch."""

    def result(self) -> Result:
        """The result on the sample."""
        return self.measure(self.subject)
