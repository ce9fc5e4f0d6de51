"""Two experiments on the same test texts: how much more of them one gets right, text by text and seed by seed."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from scipy import stats

from splade.evaluation.bootstrap import BootstrapMeans
from splade.pipelines.scoring import Decisions
from splade.report.comparison import Difference

AT_ONCE = 500
"""Texts whose resamples are held in memory."""


def paired_difference(ours: Sequence[Decisions], theirs: Sequence[Decisions]) -> Difference:
    """Accuracy of ours minus that of theirs, paired by text, one of each per seed.

    A text that several seeds are tested on counts once, with the mean of its differences: runs that share a text do
    not tell independent things about it. The interval is a bootstrap over texts; p is that of the exact sign test.

    Example: ours right on 4 texts where theirs is wrong, never the other way -> 4 won, 0 lost, p 0.125
    """
    means, rights = BootstrapMeans(), _rights(ours, theirs)
    for start in range(0, len(rights), AT_ONCE):
        part = torch.from_numpy(rights[start : start + AT_ONCE])
        means.update(range(start, start + len(part)), {"ours": part[:, 0], "theirs": part[:, 1]})
    interval = means.difference("ours", "theirs", of_shares=True)
    differences = rights[:, 0] - rights[:, 1]
    won, lost = int((differences > 0).sum()), int((differences < 0).sum())
    p = float(stats.binomtest(won, won + lost).pvalue) if won + lost else 1.0
    return Difference(mean=interval.mean, low=interval.low, high=interval.high, won=won, lost=lost, p=p)


def _rights(ours: Sequence[Decisions], theirs: Sequence[Decisions]) -> Float[ndarray, "T 2"]:
    """How often ours and theirs are right on each text: the means over the seeds that were tested on it."""
    of_texts: dict[str, list[tuple[bool, bool]]] = {}
    for own, other in zip(ours, theirs, strict=True):
        if own.digest != other.digest:
            raise ValueError("the two were tested on other texts, so they cannot be paired; train both anew")
        # Seeds may draw other test texts, which still overlap: each text is known by its own hash.
        names = own.texts or other.texts or [f"{own.digest} {i}" for i in range(len(own.is_correct))]
        for name, is_right, is_theirs in zip(names, own.is_correct, other.is_correct, strict=True):
            of_texts.setdefault(name, []).append((is_right, is_theirs))
    return np.array([np.mean(seeds, axis=0) for seeds in of_texts.values()])


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values that hold for all comparisons together: the smallest times their number, and so on.

    Example: `[0.01, 0.04, 0.03] -> [0.03, 0.06, 0.06]`
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    corrected, so_far = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        so_far = max(so_far, min(1.0, p_values[i] * (len(p_values) - rank)))
        corrected[i] = so_far
    return corrected
