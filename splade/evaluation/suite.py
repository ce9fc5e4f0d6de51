"""Everything measured of a model on one split.

1. One pass reads every text; each metric is a collector that keeps sums, never the texts' vectors.
2. What needs whole texts again (edits, skipped layers, texts without the gate, other explainers) is measured on a
   random sample.

Memory is bounded by the sample and the batch, not by the number of texts.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from splade.data.batches import tokenise
from splade.data.examples import TextSplit
from splade.evaluation.arena.contest import NoActiveWordError, compare_explainers
from splade.evaluation.arena.results import ArenaResults
from splade.evaluation.arena.settings import ArenaSettings
from splade.evaluation.calibration import CalibrationCollector
from splade.evaluation.circuit_words import FRACTIONS, Rankings
from splade.evaluation.collect import Collector, ReadBatch, collect
from splade.evaluation.completeness import CompletenessCollector
from splade.evaluation.context.streamed import ContextCollector
from splade.evaluation.eraser import EraserCollector
from splade.evaluation.frontier import FrontierCollector
from splade.evaluation.layerwise import attribute_layers
from splade.evaluation.masking_check import MaskingResult, check_masking
from splade.evaluation.performance import PerformanceCollector
from splade.evaluation.probe_loss import compute_probe_loss
from splade.evaluation.removability import COUNTS, RemovabilityCollector
from splade.evaluation.results_schema import EvaluationResults
from splade.evaluation.scaling_metrics import AblationSparsityCollector, compute_downstream_loss
from splade.evaluation.selective import SelectiveCollector
from splade.evaluation.separation import SeparationCollector
from splade.evaluation.stability import measure_stability
from splade.evaluation.text_sample import TextSample, TextSampler
from splade.evaluation.verification import VerificationCollector
from splade.explanation import PIECE
from splade.inference.labels import labels_of
from splade.models.lexical_sae import LexicalSAE
from splade.progress import OnStep, Step, silent
from splade.report.pieces import pieces_name

Result = TypeVar("Result")


@dataclass(frozen=True)
class EvaluationSettings:
    """How much is measured."""

    fractions: tuple[float, ...] = FRACTIONS
    """Sizes of circuits, as shares of a text's active words."""
    circuit_fraction: float = 0.1
    """Size of the circuits that are compared between classes."""
    removed_words: tuple[int, ...] = COUNTS
    sample_texts: int = 2000
    """Texts kept for probes and for the check of masking."""
    edited_texts: int = 200
    layer_texts: int = 100
    ungated_texts: int = 200
    explainer_texts: int = 10
    """Texts that attribution methods are compared on; 0 leaves the comparison out."""
    explainer_tokens: int = 256
    """Longer texts are not compared on: the methods read a text some hundred times."""
    batch_size: int = 32
    seed: int = 0


def evaluate(
    model: LexicalSAE,
    split: TextSplit,
    settings: EvaluationSettings = EvaluationSettings(),
    on_step: OnStep = silent,
) -> EvaluationResults:
    """All metrics of a model on texts with their true labels; give texts that nothing was chosen on.

    Example: `evaluate(model, load_text_dataset("sst2").test).completeness.sizes[2].circuit.agreement`
    """
    model = model.opened_to(tokenise(model.tokenizer, split.texts, model.max_length).ids)
    labels, seed, clock = labels_of(model), settings.seed, _Clock()
    head = model.head()
    rankings = Rankings(head, seed)
    performance = PerformanceCollector(labels, model.max_length, seed)
    context = ContextCollector(seed)
    calibration = CalibrationCollector(seed)
    selective = SelectiveCollector(model.calibration)
    frontier = FrontierCollector(head, seed=seed)
    verification = VerificationCollector(rankings, seed)
    completeness = CompletenessCollector(head, labels, settings.fractions, seed)
    eraser = EraserCollector(rankings, settings.fractions, seed)
    removability = RemovabilityCollector(rankings, settings.removed_words, seed)
    separation = SeparationCollector(len(labels), len(model.dimensions), settings.circuit_fraction, seed)
    sparsity = AblationSparsityCollector(rankings, seed)
    sampler = TextSampler(settings.sample_texts, seed)
    collectors: dict[str, Collector] = {
        "performance": performance,
        "context": context,
        "calibration": calibration,
        "selective": selective,
        "frontier": frontier,
        "verification": verification,
        "completeness": completeness,
        "eraser": eraser,
        "removability": removability,
        "separation": separation,
        "ablation sparsity": sparsity,
        "sample": sampler,
    }
    timed: Sequence[Collector] = [_Timed(name, collector, clock) for name, collector in collectors.items()]
    count = clock.time(
        "reading", lambda: collect(model, split.texts, timed, split.labels, settings.batch_size, on_step)
    )
    sample = sampler.sample()
    _, edited, _ = sample.few(settings.edited_texts)
    _, through_layers, _ = sample.few(settings.layer_texts)
    _, ungated, true = sample.few(settings.ungated_texts)

    def name_of(dimension: int) -> str:
        found = model.dimensions[dimension]
        return pieces_name(1) if found.kind == PIECE else found.name

    def on_edit(step: Step) -> None:
        on_step(replace(step, task="reading edited texts"))

    return EvaluationResults(
        texts=count,
        labels=labels,
        seed=seed,
        performance=performance.result(),
        context=context.result(),
        calibration=calibration.result(),
        frontier=frontier.result(),
        verification=verification.result(),
        completeness=completeness.result(),
        eraser=eraser.result(),
        removability=removability.result(),
        masking=clock.time("masking", lambda: _masking(model, sample, seed)),
        separation=separation.result(),
        stability=clock.time("stability", lambda: measure_stability(model, edited, seed=seed, on_step=on_edit)),
        ablation_sparsity=sparsity.result(),
        probes=clock.time("probes", lambda: compute_probe_loss(sample, labels, name_of, seed)),
        downstream=clock.time(
            "downstream", lambda: compute_downstream_loss(model, ungated, true, seed, on_step=on_step)
        ),
        layers=clock.time("layers", lambda: attribute_layers(model, through_layers, seed, on_step=on_step)),
        explainers=clock.time("explainers", lambda: _explainers(model, sample, settings, on_step)),
        seconds=clock.rounded(),
        selective=selective.result(),
    )


def _masking(model: LexicalSAE, sample: TextSample, seed: int) -> MaskingResult | None:
    masking = model.config.masking
    trained = None if masking is None else (masking.low, masking.high)
    return check_masking(sample.code, sample.word_vectors, sample.contributions, trained, seed=seed)


def _explainers(
    model: LexicalSAE, sample: TextSample, settings: EvaluationSettings, on_step: OnStep
) -> ArenaResults | None:
    """A small comparison: one seed, few steps and samples, no memory. None without a text that can be explained."""
    tokens = tokenise(model.tokenizer, sample.texts, model.max_length).ids
    short = [text for text, ids in zip(sample.texts, tokens, strict=True) if len(ids) <= settings.explainer_tokens]
    if not (settings.explainer_texts and short):
        return None
    sizes = ArenaSettings(
        texts=settings.explainer_texts,
        seeds=1,
        path_steps=20,
        shapley_orders=5,
        captum_steps=10,
        lime_samples=50,
        memory_texts=0,
        seed=settings.seed,
    )
    try:
        return compare_explainers(model, short, settings=sizes, on_step=on_step)
    except NoActiveWordError:
        return None


class _Clock:
    """Wall time by part; a part may be entered many times."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def time(self, name: str, work: Callable[[], Result]) -> Result:
        """Do the work and add its time to the part."""
        started = time.perf_counter()
        try:
            return work()
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started

    def rounded(self) -> dict[str, float]:
        return {name: round(seconds, 2) for name, seconds in self.seconds.items()}


@dataclass(frozen=True)
class _Timed:
    """A collector whose time is taken."""

    name: str
    collector: Collector
    clock: _Clock

    def update(self, batch: ReadBatch) -> None:
        self.clock.time(self.name, lambda: self.collector.update(batch))
