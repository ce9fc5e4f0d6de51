"""Figures per explainer, over texts and seeds.

An explainer that draws is asked with several seeds. A text's figure is the mean over them, so intervals over texts mean
the same for all; what the seed alone changes stands beside it.
"""

from collections.abc import Mapping, Sequence

import torch

from splade.evaluation.bootstrap import BootstrapMeans
from splade.evaluation.intervals import Interval, mean_and_interval

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
        """How much one explainer is above another, paired by text; nobody is above itself, without any doubt."""
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
