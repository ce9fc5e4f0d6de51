"""Means over texts with bootstrap intervals, kept while the texts stream by.

A resample of a corpus gives every text a count. Drawn independently from a Poisson distribution of mean one, the counts
need not know the other texts, so all resamples can be summed in one pass: memory depends on the number of figures, not
on the number of texts. A text's counts follow from the seed and its place in the corpus alone. So batches do not
matter, and figures of the same texts are resampled together: their differences and ratios are paired. What is given the
same place, as the words of a sentence are, stands and falls together.

Resamples of values that are all equal have no spread, though other texts may differ: ten right decisions out of ten are
not "100 %, from 100 % to 100 %". For shares, which cannot leave 0 to 1, exact ends take their place (`share`).
"""

import functools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress, product

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from lexical_sae.evaluation.intervals import Interval, ends_of_equal_values

REFERENCE = "Chamandy et al. 2012, Estimating uncertainty for massive data streams"
ROUNDS = 1000
"""Resamples behind every interval."""

Combine = Callable[[Float[ndarray, "R M"]], Float[ndarray, " R"]]
"""One figure from the means of several, for every resample at once."""


class BootstrapMeans:
    """Mean of named figures over texts, with 95 % percentile intervals.

    Example: `means.update(batch.rows, {"right": right}); means.share("right").low`
    """

    def __init__(self, rounds: int = ROUNDS, seed: int = 0) -> None:
        self.rounds, self.seed = rounds, seed
        # Per figure, its weighed sum, the sum of the weights, the number of values, and the places that they came from,
        # a bit each: of a million texts 125 kB. Line 0 is the corpus itself.
        self._totals: dict[str, Float[ndarray, " R"]] = {}
        self._weights: dict[str, Float[ndarray, " R"]] = {}
        self._counts: dict[str, int] = {}
        self._places: dict[str, int] = {}

    def update(self, rows: Sequence[int], figures: Mapping[str, Tensor]) -> None:
        """Add one value per row and figure; a row whose value is NaN does not count for that figure."""
        if not figures:
            return
        values = np.stack([figure.detach().cpu().double().numpy() for figure in figures.values()], axis=1)
        assert values.shape == (len(rows), len(figures)), "one value per text and figure"
        is_known = ~np.isnan(values)
        weights = _text_weights(tuple(rows), self.rounds, self.seed)
        places = {column.tobytes(): _bits(compress(rows, column)) for column in is_known.T}
        totals, known = weights @ np.where(is_known, values, 0.0), weights @ is_known.astype(float)
        for i, name in enumerate(figures):
            self._totals[name] = self._totals.get(name, 0.0) + totals[:, i]
            self._weights[name] = self._weights.get(name, 0.0) + known[:, i]
            self._counts[name] = self._counts.get(name, 0) + int(is_known[:, i].sum())
            self._places[name] = self._places.get(name, 0) | places[is_known[:, i].tobytes()]

    def __getitem__(self, name: str) -> Interval:
        """The mean of a figure; without any text it has neither mean (NaN) nor ends."""
        return self.combined([name], lambda means: means[:, 0])

    def share(self, name: str) -> Interval:
        """The mean of a figure that lies between 0 and 1, such as 1 for a right decision and 0 for a wrong one.

        Example: ten texts that are all 1 -> 1, from 0.69 to 1
        """
        return self.combined([name], lambda means: means[:, 0], of_shares=True)

    def difference(self, ours: str, theirs: str, *, of_shares: bool = False) -> Interval:
        """Mean of one figure minus that of another, paired by text."""
        return self.combined([ours, theirs], lambda means: means[:, 0] - means[:, 1], of_shares=of_shares)

    def ratio(self, top: str, bottom: str, *, of_shares: bool = False) -> Interval:
        """Mean of one figure divided by that of another: figures per text that are large count for more."""

        def divide(means: Float[ndarray, "R M"]) -> Float[ndarray, " R"]:
            return means[:, 0] / np.where(means[:, 1] == 0, np.nan, means[:, 1])

        return self.combined([top, bottom], divide, of_shares=of_shares)

    def combined(self, names: Sequence[str], combine: Combine, *, of_shares: bool = False) -> Interval:
        """A function of the means of several figures, computed again in every resample.

        Where all resamples agree, the ends are those that the function takes when each share is at an exact end.
        """
        count = min(self._counts.get(name, 0) for name in names)
        if not count:
            return Interval(float("nan"), None, None, 0)
        totals = np.stack([self._totals[name] for name in names], axis=1)
        weights = np.stack([self._weights[name] for name in names], axis=1)
        means = totals / np.where(weights == 0, np.nan, weights)
        found = combine(means)
        resampled = found[1:][np.isfinite(found[1:])]
        # Values of one place always come together: no resample differs from another.
        places = min(self._places[name].bit_count() for name in names)
        if places < 2 or not len(resampled):
            return Interval(float(found[0]), None, None, count)
        if of_shares and np.ptp(resampled) < 1e-9:
            ends = [ends_of_equal_values(float(mean), places) for mean in means[0]]
            resampled = combine(np.array(list(product(*ends))))
            low, high = np.nanmin(resampled), np.nanmax(resampled)
        else:
            low, high = np.quantile(resampled, [0.025, 0.975])
        return Interval(float(found[0]), float(low), float(high), count)


def _bits(places: Iterable[int]) -> int:
    """A number with one bit per place, however often it is named. Example: `0, 2, 2 -> 0b101`"""
    return functools.reduce(operator.or_, (1 << int(place) for place in set(places)), 0)


@functools.lru_cache(maxsize=2)
def _text_weights(rows: tuple[int, ...], rounds: int, seed: int) -> Float[ndarray, "R B"]:
    """How often each text stands in each resample; line 0 has every text once. Collectors of one batch share them."""
    drawn = np.stack([np.random.default_rng([seed, row]).poisson(1.0, rounds) for row in rows], axis=1)
    return np.concatenate([np.ones((1, len(rows))), drawn])
