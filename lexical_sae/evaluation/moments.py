"""Means and spreads of many streams of numbers at once, without keeping the numbers."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy import stats
from torch import Tensor


@dataclass(frozen=True)
class Means:
    """A mean per cell, and how far its 95 % confidence interval (Student's) reaches to either side."""

    mean: Float[Tensor, " N"]
    reach: Float[Tensor, " N"]
    """NaN where there are fewer than two numbers."""

    def ends(self, cell: int) -> tuple[float | None, float | None]:
        """Low and high end of one interval; None where there is none."""
        mean, reach = float(self.mean[cell]), float(self.reach[cell])
        return (None, None) if np.isnan(reach) else (mean - reach, mean + reach)


class Moments:
    """Count, mean and sum of squared deviations of the numbers in each of `size` cells.

    Batches are merged by the mean and the squares of each, not by sums of squares: numbers that are large and lie close
    together lose no digits.
    """

    REFERENCE = "Chan, Golub & LeVeque 1979, Updating formulae and a pairwise algorithm for computing sample variances"

    def __init__(self, size: int) -> None:
        # On the CPU in double precision, wherever the model computes.
        self.count, self.mean, self.squares = torch.zeros(3, size, dtype=torch.float64, device="cpu")

    def update(self, cells: Int[Tensor, " K"], values: Float[Tensor, " K"]) -> None:
        """Add numbers to their cells; a cell may be given several."""
        touched, place = cells.cpu().unique(return_inverse=True)
        given = values.detach().cpu().double()
        nothing = torch.zeros(len(touched), dtype=torch.float64)
        count = nothing.index_add(0, place, torch.ones_like(given))
        mean = nothing.index_add(0, place, given) / count
        squares = nothing.index_add(0, place, (given - mean[place]).square())
        before, step = self.count[touched], mean - self.mean[touched]
        total = before + count
        self.squares[touched] += squares + step.square() * before * count / total
        self.mean[touched] += step * count / total
        self.count[touched] = total

    @property
    def spread(self) -> Float[Tensor, " N"]:
        """Standard deviation of the numbers in each cell; zero with fewer than two."""
        return (self.squares / (self.count - 1).clamp(min=1)).sqrt()

    def means(self) -> Means:
        """The mean of each cell with its interval; zero in a cell without numbers."""
        return self.means_over(self.count)

    def means_over(self, totals: Float[Tensor, " N"]) -> Means:
        """The mean over `totals` numbers per cell, of which those that were not given are zero.

        Example: the numbers 2 and 4 over a total of 4 -> mean 1.5, that of [2, 4, 0, 0]
        """
        share = self.count / totals.clamp(min=1)
        squares = self.squares + self.count * self.mean.square() * (1 - share)
        freedom = totals - 1
        t = torch.from_numpy(np.asarray(stats.t.ppf(0.975, freedom.clamp(min=1).numpy())))
        reach = t * (squares / freedom.clamp(min=1) / totals.clamp(min=1)).sqrt()
        return Means(share * self.mean, reach.where(freedom >= 1, torch.nan))
