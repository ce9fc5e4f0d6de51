"""Shares, means and exact tests of many words at once, from counts and sums alone."""

from typing import Any

import numpy as np
from numpy import ndarray
from scipy.special import betaln
from scipy.stats import t as student

Z = 1.959963984540054
"""Of 95 %."""
REFERENCE = "Wilson 1927, JASA 22(158)"


def wilson(count: ndarray, total: ndarray) -> tuple[ndarray, ndarray]:
    """95 % confidence limits of shares; 0 to 1 of nothing.

    Example: 5 of 10 -> from 0.24 to 0.76; 0 of 10 -> from 0 to 0.28
    """
    count, total = np.asarray(count, float), np.asarray(total, float)
    with np.errstate(invalid="ignore", divide="ignore"):
        share, more = count / total, Z**2 / total
        middle = (share + more / 2) / (1 + more)
        reach = Z * np.sqrt(share * (1 - share) / total + more / total / 4) / (1 + more)
    low, high = np.where(count == 0, 0.0, middle - reach), np.where(count == total, 1.0, middle + reach)
    return np.where(total > 0, low, 0.0), np.where(total > 0, high, 1.0)


def mean_limits(count: ndarray, total: ndarray, squares: ndarray) -> tuple[ndarray, ndarray, ndarray]:
    """Means with Student's 95 % limits, from a count, a sum and a sum of squares; NaN where there are none.

    Example: values 1, 2, 3 (count 3, sum 6, squares 14) -> 2, from -0.48 to 4.48
    """
    count, total, squares = (np.asarray(each, float) for each in (count, total, squares))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / count
        variance = np.maximum(0.0, squares - total * mean) / (count - 1)
        reach = np.where(count > 1, student.ppf(0.975, np.maximum(1, count - 1)) * np.sqrt(variance / count), np.nan)
    return mean, mean - reach, mean + reach


def word_figures(listed: ndarray, texts: ndarray, total: ndarray, squares: ndarray) -> dict[str, Any]:
    """Columns on words that `listed` of `texts` texts list, with these sums of their contributions and of the squares.

    `share` of the texts, `mean` where listed, and `per_text`: the mean over all the texts, zero where it is not listed.
    """
    share_low, share_high = wilson(listed, texts)
    mean, low, high = mean_limits(listed, total, squares)
    per_text, per_text_low, per_text_high = mean_limits(texts, total, squares)
    return {
        "listed": listed, "texts": texts,
        "share": listed / np.maximum(1, texts), "share_low": share_low, "share_high": share_high,
        "mean": mean, "mean_low": low, "mean_high": high,
        "per_text": per_text, "per_text_low": per_text_low, "per_text_high": per_text_high,
    }  # fmt: skip


def chance_of_split(inside: ndarray, marked: ndarray, drawn: ndarray, total: ndarray) -> ndarray:
    """Two-sided p-values of Fisher's exact test, from above.

    `marked` of `total` things are of a kind, and `inside` of those are among the `drawn`. Beyond the observed count
    the hypergeometric probabilities fall ever faster, so that their sum is at most the first one divided by one minus
    the first ratio. At p-values that count this is a few percent more than the sum, which is never computed: any number
    of things costs the same.

    Example: 9 of 10 marked things are among the half of 100 that was drawn -> 0.0158 (the sum: 0.0157)
    """
    inside, marked, drawn, total = (np.asarray(each, float) for each in (inside, marked, drawn, total))
    above = _upper_tail(inside, marked, drawn, total)
    below = _upper_tail(marked - inside, marked, total - drawn, total)
    return np.minimum(1.0, 2 * np.minimum(above, below))


def _upper_tail(inside: ndarray, marked: ndarray, drawn: ndarray, total: ndarray) -> ndarray:
    left, unmarked = marked - inside, total - marked - drawn + inside
    log_chance = _log_choose(drawn, inside) + _log_choose(total - drawn, left) - _log_choose(total, marked)
    ratio = left * (drawn - inside) / ((inside + 1) * (unmarked + 1))
    with np.errstate(divide="ignore"):
        return np.where(ratio < 1, np.minimum(1.0, np.exp(log_chance) / (1 - np.minimum(ratio, 1.0))), 1.0)


def _log_choose(total: ndarray, part: ndarray) -> ndarray:
    return -np.log1p(total) - betaln(total - part + 1, part + 1)
