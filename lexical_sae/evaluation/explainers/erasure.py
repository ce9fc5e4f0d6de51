"""What taking the top words away does to the predicted class, with the same budgets for every explainer.

    comprehensiveness   probability lost without the top words; high is good
    sufficiency         probability lost with nothing else; low is good
    flips               share of texts whose label changes without the top words; high is good

Budgets are shares of a text's words, and each headline figure is the mean over budgets (AOPC). Words that contribute
most to the predicted class go first. Both settings that remove words share this file; what differs is what a word is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lexical_sae.evaluation.bootstrap import BootstrapMeans
from lexical_sae.evaluation.explainers.case import Case, Scores
from lexical_sae.evaluation.intervals import Interval, mean_and_interval
from lexical_sae.models.circuit_state import circuit_size

Figure = Mapping[str, float]
"""Figures of one text by name; NaN where there is none."""


class Figures:
    """Means with bootstrap intervals, by explainer and name."""

    def __init__(self, seed: int = 0) -> None:
        self.means = BootstrapMeans(seed=seed)
        self.seeds: dict[str, int] = {}

    def add(self, row: int, found: Mapping[str, Sequence[Figure]]) -> None:
        """One text: per explainer the figures of each seed."""
        values: dict[str, float] = {}
        for name, per_seed in found.items():
            self.seeds[name] = len(per_seed)
            for figure in per_seed[0]:
                drawn = [one[figure] for one in per_seed]
                values[_key(name, figure)] = sum(drawn) / len(drawn)
                if len(drawn) > 1:
                    values |= {_key(name, figure, seed): value for seed, value in enumerate(drawn)}
        self.means.update([row], {key: torch.tensor([value], dtype=torch.float64) for key, value in values.items()})

    def mean(self, name: str, figure: str) -> Interval:
        """Over texts."""
        return self.means[_key(name, figure)]

    def share(self, name: str, figure: str) -> Interval:
        """Over texts, of a figure that lies between 0 and 1."""
        return self.means.share(_key(name, figure))

    def ratio(self, name: str, top: str, bottom: str) -> Interval:
        """One figure as a share of another, over all texts together."""
        return self.means.ratio(_key(name, top), _key(name, bottom))

    def difference(self, name: str, control: str, figure: str, *, of_shares: bool = False) -> Interval:
        """How much one explainer is above another, paired by text; the difference to itself is exactly zero."""
        if name == control:
            return Interval(0.0, None, None, self.mean(name, figure).count)
        return self.means.difference(_key(name, figure), _key(control, figure), of_shares=of_shares)

    def between_seeds(self, name: str, figure: str) -> Interval | None:
        """The means of each seed, and Student's interval over seeds; None where no seed matters."""
        if self.seeds.get(name, 1) < 2:
            return None
        return mean_and_interval([self.means[_key(name, figure, seed)].mean for seed in range(self.seeds[name])])


def _key(name: str, figure: str, seed: int | None = None) -> str:
    return f"{name} / {figure}" if seed is None else f"{name} / {figure} / seed {seed}"


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
    """Comprehensiveness above that of words sampled at random, paired by text."""
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
