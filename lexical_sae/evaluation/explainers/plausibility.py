"""Ground 3: do the words that an explainer puts first agree with those that people marked as the reason?

    auprc      area under precision and recall over all cuts of the order
    token F1   of the first words, as many as people mark on average (the same share for every text and explainer)
    IOU F1     of the runs of words so chosen; a run counts where it and a marked run share half of their union

This asks what people find convincing, not what the model does: a faithful account of a strange model scores low.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import average_precision_score

from lexical_sae.data.sources.rationales import Rationale
from lexical_sae.data.words import Span
from lexical_sae.evaluation.explainers.case import Case, Scores
from lexical_sae.evaluation.explainers.erasure import Figure, Figures, top_words
from lexical_sae.evaluation.intervals import Interval

REFERENCE = "DeYoung et al. 2020, arXiv:1911.03429"
MATCH = 0.5
"""Share of their union that two runs must have in common to count as one."""


@dataclass(frozen=True)
class PlausibilityScores:
    """One explainer beside people."""

    auprc: Interval
    token_f1: Interval
    iou_f1: Interval
    advantage: Interval
    """AUPRC above that of words sampled at random, paired by text."""
    between_seeds: Interval | None
    """AUPRC over seeds, for explainers that have one."""


class PlausibilityGround:
    """Compares words with rationales, text by text; `share` is the part of the words that people mark."""

    def __init__(self, share: float, control: str, seed: int = 0) -> None:
        self.share, self.control = share, control
        self.figures = Figures(seed)

    def update(self, case: Case, marked: Collection[int], told: Mapping[str, Sequence[Scores]]) -> None:
        """One text with the words that people marked; per explainer its scores of the text's words for each seed."""
        is_marked = np.isin(np.arange(case.num_written), list(marked))

        def measure(scores: Scores) -> Figure:
            chosen = set(top_words(scores, self.share).tolist())
            return {
                "auprc": float(average_precision_score(is_marked, scores.detach().double().numpy())),
                "token F1": f1(len(chosen & set(marked)), len(chosen & set(marked)), len(chosen), len(marked)),
                "IOU F1": run_f1(chosen, marked),
            }

        self.figures.add(case.row, {name: [measure(one) for one in per_seed] for name, per_seed in told.items()})

    def result(self) -> dict[str, PlausibilityScores]:
        """All texts so far, by explainer."""
        of = self.figures
        return {
            name: PlausibilityScores(
                auprc=of.share(name, "auprc"),
                token_f1=of.share(name, "token F1"),
                iou_f1=of.share(name, "IOU F1"),
                advantage=of.difference(name, self.control, "auprc", of_shares=True),
                between_seeds=of.between_seeds(name, "auprc"),
            )
            for name in of.seeds
        }


def marked_words(words: Sequence[Span], rationale: Rationale) -> frozenset[int]:
    """The words, by number, that share a character with what people marked."""
    return frozenset(
        i for i, (start, end) in enumerate(words) if any(a < end and start < b for a, b in rationale.spans)
    )


def run_f1(chosen: Collection[int], marked: Collection[int]) -> float:
    """F1 of runs of neighbouring words: the share of ours that match one of theirs, and of theirs that match ours.

    Example: ours {1, 2, 9}, theirs {2, 3, 1} -> the run 1-2 matches 1-3, 9 does not: precision 1/2, recall 1, F1 2/3
    """
    ours, theirs = runs(chosen), runs(marked)
    found = sum(any(_overlap(run, other) >= MATCH for other in theirs) for run in ours)
    met = sum(any(_overlap(run, other) >= MATCH for run in ours) for other in theirs)
    return f1(found, met, len(ours), len(theirs))


def runs(words: Collection[int]) -> list[range]:
    """Neighbouring numbers as ranges. Example: {1, 2, 9} -> 1-2 and 9"""
    found: list[range] = []
    for word in sorted(words):
        if found and found[-1].stop == word:
            found[-1] = range(found[-1].start, word + 1)
        else:
            found.append(range(word, word + 1))
    return found


def f1(right: int, found: int, chosen: int, wanted: int) -> float:
    """Harmonic mean of precision `right / chosen` and recall `found / wanted`; 0 where one of them is."""
    if not right or not found:
        return 0.0
    precision, recall = right / chosen, found / wanted
    return 2 * precision * recall / (precision + recall)


def _overlap(run: range, other: range) -> float:
    """Intersection over union."""
    shared = max(0, min(run.stop, other.stop) - max(run.start, other.start))
    return shared / (len(run) + len(other) - shared)
