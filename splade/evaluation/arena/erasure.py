"""What taking the top words away does to the predicted class, with the same budgets for every explainer.

    comprehensiveness   probability lost without the top words; high is good
    sufficiency         probability lost with nothing else; low is good
    flips               share of texts whose label changes without the top words; high is good

Budgets are shares of a text's words, and each headline figure is the mean over budgets (AOPC). Words that speak most
*for* the predicted class go first. Both grounds that remove words share this file; what differs is what a word is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from splade.circuits.core import circuit_size
from splade.evaluation.arena.case import Case, Scores
from splade.evaluation.arena.figures import Figures
from splade.evaluation.intervals import Interval

REFERENCE = "DeYoung et al. 2020, arXiv:1911.03429"
KINDS = ("comprehensiveness", "sufficiency", "flips")


@dataclass(frozen=True)
class ErasureBudget:
    """What a share of the words does."""

    fraction: float
    comprehensiveness: Interval
    sufficiency: Interval
    flips: Interval


@dataclass(frozen=True)
class Erasure:
    """One explainer's order of words; the headline figures are means over the budgets."""

    comprehensiveness: Interval
    sufficiency: Interval
    flips: Interval
    advantage: Interval
    """Comprehensiveness above that of words drawn by lot, paired by text."""
    between_seeds: Interval | None
    """Comprehensiveness over seeds, for explainers that have one."""
    budgets: tuple[ErasureBudget, ...]


def top_words(scores: Scores, fraction: float) -> Int[Tensor, " k"]:
    """The words with the highest scores, as many as the budget buys: at least one; of equal ones the earlier.

    Example: scores [0.1, -2, 0.5] and a fraction of 0.34 -> [2]
    """
    count = int(circuit_size(torch.ones_like(scores, dtype=torch.bool), fraction))
    return scores.argsort(descending=True, stable=True)[:count]


def erasure_figures(
    case: Case, without: Float[Tensor, "F C"], alone: Float[Tensor, "F C"], fractions: Sequence[float]
) -> dict[str, float]:
    """A text's figures, from its logits without the top words of each budget and with these alone."""
    label = case.predicted
    full = case.state.logits.softmax(-1)[0, label]
    lost = [full - logits.softmax(-1)[:, label] for logits in (without, alone)]
    flips = (without.argmax(-1) != label).to(full.dtype)
    figures: dict[str, float] = {}
    for kind, values in zip(KINDS, (*lost, flips), strict=True):
        figures[kind] = float(values.mean())
        figures |= {f"{kind} {fraction}": float(value) for fraction, value in zip(fractions, values, strict=True)}
    return figures


def erasure_of(figures: Figures, name: str, fractions: Sequence[float], control: str) -> Erasure:
    """All texts so far, of one explainer."""
    budgets = tuple(
        ErasureBudget(
            fraction,
            figures.mean(name, f"comprehensiveness {fraction}"),
            figures.mean(name, f"sufficiency {fraction}"),
            figures.share(name, f"flips {fraction}"),
        )
        for fraction in fractions
    )
    return Erasure(
        comprehensiveness=figures.mean(name, "comprehensiveness"),
        sufficiency=figures.mean(name, "sufficiency"),
        flips=figures.share(name, "flips"),
        advantage=figures.difference(name, control, "comprehensiveness"),
        between_seeds=figures.between_seeds(name, "comprehensiveness"),
        budgets=budgets,
    )
