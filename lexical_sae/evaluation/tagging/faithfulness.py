"""Whether a tagger's explanations are faithful: the classifier's metrics at every word of tagged sentences.

A word's own decision is what is measured, before tags are made to fit together. Most words are `O`, which the bias
alone may decide; so each question is answered over all words, and again over those that are tagged as part of an
entity. Intervals are over sentences: the words of a sentence stand and fall together.
"""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from lexical_sae.data import TaggedSplit
from lexical_sae.data.tagging import parse_tag
from lexical_sae.evaluation.circuit_words import Rankings
from lexical_sae.evaluation.collect import DecisionBatch
from lexical_sae.evaluation.intervals import read_result
from lexical_sae.evaluation.metrics.completeness import CompletenessCollector, CompletenessResult
from lexical_sae.evaluation.metrics.eraser import EraserCollector, EraserResult
from lexical_sae.evaluation.metrics.removability import RemovabilityCollector, RemovabilityResult
from lexical_sae.evaluation.metrics.separation import SeparationCollector, SeparationResult
from lexical_sae.evaluation.metrics.verification import Verification, VerificationCollector
from lexical_sae.evaluation.settings import FRACTIONS, REMOVED_WORDS
from lexical_sae.inference.labels import label_index
from lexical_sae.inference.word_decisions import ReadWords, read_words, words_of
from lexical_sae.models.circuit_state import SparseCircuitState
from lexical_sae.models.lexical_sae import TAG, LexicalSAE
from lexical_sae.models.sparse_code import SparseCode
from lexical_sae.utils.progress import OnStep, Step, silent


@dataclass(frozen=True)
class WordBatch(DecisionBatch):
    """Some words of sentences and the model's decision on each."""

    sentences: tuple[int, ...]
    """The sentence that each word stands in."""

    @property
    def drawn_with(self) -> tuple[int, ...]:
        """A word stands and falls with its sentence."""
        return self.sentences


@dataclass(frozen=True)
class TagTier:
    """The questions over some words; active shape features count among a word's active words."""

    words: int
    verification: Verification
    completeness: CompletenessResult
    eraser: EraserResult
    removability: RemovabilityResult


@dataclass(frozen=True)
class TagFaithfulness:
    """Whether a tagger's explanations are true, each figure beside its controls. None where there was no such word."""

    sentences: int
    tags: tuple[str, ...]
    seed: int
    all_words: TagTier | None
    entities: TagTier | None
    """Over words that are tagged as part of an entity."""
    separation: SeparationResult
    """Of the tags' words, over all words."""
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> "TagFaithfulness":
        """The results that a tagger's `evaluation.json` holds. Raises ValueError where they cannot be read."""
        return read_result(cls, dict(found))


class _Tier:
    """The collectors of one tier; they share the order of a batch's words."""

    def __init__(self, model: LexicalSAE, fractions: tuple[float, ...], counts: tuple[int, ...], seed: int) -> None:
        head = model.head(TAG)
        rankings = Rankings(head, seed)
        self.words = 0
        self.verification = VerificationCollector(rankings, seed)
        self.completeness = CompletenessCollector(head, model.labels[TAG], fractions, seed)
        self.eraser = EraserCollector(rankings, fractions, seed)
        self.removability = RemovabilityCollector(rankings, counts, seed)

    def update(self, batch: WordBatch) -> None:
        if not batch.rows:
            return
        self.words += len(batch.rows)
        for collector in (self.verification, self.completeness, self.eraser, self.removability):
            collector.update(batch)

    def result(self) -> TagTier | None:
        if not self.words:
            return None
        return TagTier(
            self.words,
            self.verification.result(),
            self.completeness.result(),
            self.eraser.result(),
            self.removability.result(),
        )


def measure_tags(
    model: LexicalSAE,
    split: TaggedSplit,
    *,
    fractions: tuple[float, ...] = FRACTIONS,
    removed_words: tuple[int, ...] = REMOVED_WORDS,
    circuit_fraction: float = 0.1,
    batch_size: int = 16,
    seed: int = 0,
    on_step: OnStep = silent,
) -> TagFaithfulness:
    """Circuits, removals and separation of a tagger on sentences with their true tags, beside random and empty ones.

    Collectors keep sums: memory is bounded by the batch, not by the number of sentences.

    Example: `measure_tags(model, dataset.test.take(range(300))).entities.removability.removed[0].orders["direct"]`
    """
    started, names = time.perf_counter(), model.labels[TAG]
    numbers = {tag: label_index(names, tag, "tag") for tag in {tag for tags in split.tags for tag in tags}}
    # A word's number depends on the sentences alone, and so do its random numbers.
    firsts = [0, *accumulate(map(len, split.tokens))]
    is_entity = torch.tensor([parse_tag(name)[0] != "O" for name in names])
    everything, entities = (_Tier(model, fractions, removed_words, seed) for _ in range(2))
    separation = SeparationCollector(len(names), len(model.dimensions), circuit_fraction, seed)

    def told(step: Step) -> None:
        on_step(replace(step, task="removing words"))

    rows = words_of(model, split.tokens)
    for read in read_words(model, split.tokens, rows, batch_size=batch_size, on_step=told):
        batch = _batch(read, split, numbers, firsts)
        everything.update(batch)
        separation.update(batch)
        entities.update(_only(batch, is_entity.to(batch.predicted.device)[batch.predicted]))
    return TagFaithfulness(
        sentences=len(split),
        tags=tuple(names),
        seed=seed,
        all_words=everything.result(),
        entities=entities.result(),
        separation=separation.result(),
        seconds=round(time.perf_counter() - started, 2),
    )


def _batch(read: ReadWords, split: TaggedSplit, numbers: Mapping[str, int], firsts: list[int]) -> WordBatch:
    classes = torch.tensor([numbers[split.tags[sentence][word]] for sentence, word in read.places])
    return WordBatch(
        rows=tuple(firsts[sentence] + word for sentence, word in read.places),
        classes=classes.to(read.state.logits.device),
        state=read.state,
        sentences=tuple(sentence for sentence, _ in read.places),
    )


def _only(batch: WordBatch, wanted: Bool[Tensor, " B"]) -> WordBatch:
    """The wanted words of a batch."""
    state, code = batch.state, batch.state.code
    inside, number = wanted[code.rows], wanted.cumsum(0) - 1
    kept = SparseCode.from_entries(
        number[code.rows[inside]],
        code.ids[inside],
        code.values[inside],
        code.positions[inside],
        (int(wanted.sum()), code.size),
    )
    chosen = wanted.nonzero().flatten().tolist()
    return WordBatch(
        rows=tuple(batch.rows[i] for i in chosen),
        classes=batch.classes[wanted],
        state=SparseCircuitState(
            state.logits[wanted], kept, state.readout[wanted], state.word_vectors, state.b_eff[wanted]
        ),
        sentences=tuple(batch.sentences[i] for i in chosen),
    )
