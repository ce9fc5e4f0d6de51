"""How well probes still read a concept from the words after a removal, with ceilings, floor and control.

Probes are fitted on one split and scored on another, both balanced, so that guessing gives 50 %. Each removal is
compared with
- the ceilings: the same probes before it, and a probe on the raw text;
- the floor: the majority rate;
- the control: the same probes on shuffled concepts. A control above the floor would mean a broken measurement.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Int
from numpy import ndarray

from lexical_sae.intervene.certificate import Leakage, LeakageScore, NamedTexts
from lexical_sae.intervene.concepts.probes import PROBES, ProbeScore, probe_features, run_probe, text_probe
from lexical_sae.intervene.concepts.removals import Edit, ZeroWords
from lexical_sae.intervene.concepts.word_matrix import Codes
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.progress import OnStep, Step, silent

BEFORE, TEXT, CONTROL = "before removal", "raw text", "shuffled concept"
TOO_FEW = 20
"""Minimum number of texts with, and without, the concept in each split."""


@dataclass(frozen=True)
class ConceptTexts:
    """Texts of one split with their activations, and whether each mentions the concept."""

    texts: Sequence[str]
    codes: Codes
    concept: Bool[ndarray, " N"]

    def take(self, rows: Int[ndarray, " M"]) -> "ConceptTexts":
        """Some of the texts."""
        texts = tuple(self.texts[int(i)] for i in rows)
        return ConceptTexts(texts, self.codes[rows], self.concept[rows])


@dataclass(frozen=True)
class LeakageTable:
    """Scores of all probes on all representations, on the same held-out texts."""

    majority: float
    scores: Mapping[str, tuple[ProbeScore, ...]]
    """By representation: the ceilings, the control, and each removal by its name."""
    held_out: ConceptTexts

    def best(self, representation: str) -> ProbeScore:
        """The best probe."""
        return max(self.scores[representation], key=lambda score: score.accuracy)

    def leaks(self, representation: str) -> bool:
        """Whether a probe beats guessing there, corrected for the number of probes."""
        scores = self.scores[representation]
        return any(score.beats(self.majority, len(scores)) for score in scores)

    def as_certificate(self, concept: str, data: str) -> Leakage:
        """Level 3 of a certificate."""
        source = NamedTexts(data, self.held_out.texts, self.held_out.concept.astype(int).tolist()).source()
        scores = [
            LeakageScore(representation=name, probe=s.probe, accuracy=s.accuracy, low=s.low, high=s.high)
            for name, found in self.scores.items()
            for s in found
        ]
        return Leakage(concept=concept, data=source, majority=self.majority, scores=tuple(scores))


def measure_leakage(
    fit: ConceptTexts,
    held_out: ConceptTexts,
    edits: Mapping[str, Edit],
    *,
    most_texts: int = 2000,
    seed: int = 0,
    on_step: OnStep = silent,
) -> LeakageTable:
    """The scores of every removal, with ceilings and control.

    Args:
        fit: Texts to fit probes on.
        held_out: Texts to score them on; removals must not have been fitted on these.
        edits: Removals by name.
        most_texts: Maximum number of texts per split.
        seed: Seed of sampling, shuffling and probes.
        on_step: Receives progress.

    Returns:
        Scores by removal and probe.

    Example: `measure_leakage(train, test, {"zeroing": ZeroWords.of(ids)}).leaks("zeroing")`
    """
    rng = np.random.default_rng(seed)
    fit, held_out = (split.take(balanced_rows(split.concept, most_texts, rng)) for split in (fit, held_out))
    nothing = ZeroWords(frozenset())
    mixed_fit, mixed_held_out = (replace(split, concept=rng.permutation(split.concept)) for split in (fit, held_out))
    raw = (fit.texts, fit.concept), (held_out.texts, held_out.concept)
    scores: dict[str, tuple[ProbeScore, ...]] = {TEXT: (run_probe("logistic regression", text_probe(seed), *raw),)}
    jobs = {BEFORE: (nothing, fit, held_out), CONTROL: (nothing, mixed_fit, mixed_held_out)}
    jobs |= {name: (edit, fit, held_out) for name, edit in edits.items()}
    for done, (name, job) in enumerate(jobs.items(), start=1):
        scores[name] = _probe_all(*job, seed)
        on_step(Step("probing for leakage", done, len(jobs)))
    majority = max(float(held_out.concept.mean()), 1 - float(held_out.concept.mean()))
    return LeakageTable(majority, scores, held_out)


def balanced_rows(concept: Bool[ndarray, " N"], most: int, rng: np.random.Generator) -> Int[ndarray, " M"]:
    """As many texts with the concept as without, at most `most` in total, in their order."""
    sides = [np.flatnonzero(concept), np.flatnonzero(~concept)]
    count = min(most // 2, *(len(side) for side in sides))
    if count < TOO_FEW:
        raise SettingsError(
            f"leakage needs {TOO_FEW} texts with the concept and {TOO_FEW} without in each split, but one has "
            f"{len(sides[0])} with and {len(sides[1])} without: give more texts, or another concept"
        )
    return np.sort(np.concatenate([rng.permutation(side)[:count] for side in sides]))


def _probe_all(edit: Edit, fit: ConceptTexts, held_out: ConceptTexts, seed: int) -> tuple[ProbeScore, ...]:
    features, others = probe_features(edit(fit.codes), edit(held_out.codes))
    if not features.shape[1]:
        raise SettingsError("no word is left in the texts after the removal; there is nothing to probe")
    return tuple(
        run_probe(name, probe(seed), (features, fit.concept), (others, held_out.concept))
        for name, probe in PROBES.items()
    )
