"""Which rows of a table are known to differ from nothing: those that stay where they are when a fold is left out.

Most words of a long text are plain ones, and there are many of them. The chance part of their rows adds up, until it
decides. So rows that could as well be zero may be emptied.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def certain_rows(
    rows: Float[Tensor, "V C"], left_out: Sequence[Float[Tensor, "V C"]], least: float
) -> Bool[Tensor, " V"]:
    """Rows with an entry at least so many standard errors from zero.

    Args:
        rows: Of the table of all texts.
        left_out: Of the tables that leave out a fold each.
        least: Standard errors; by the jackknife over folds.

    Example: entries 0.5, without each of two folds 0.4 and 0.6 -> standard error 0.1, five of them
    """
    parts = torch.stack(list(left_out))
    share = (len(parts) - 1) / len(parts)
    errors = (share * (parts - parts.mean(0)).square().sum(0)).sqrt()
    return (rows.abs() >= least * errors).any(-1)
