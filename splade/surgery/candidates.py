"""The words that may make a classifier treat a group differently: found in what they contribute, not in their names.

Among texts without a positive label, a false positive comes from words that speak for it. So a word is suspect if, on
such texts, it says more for the positive labels where the group is mentioned than where it is not.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from splade.evaluation.lexicon import NameOf
from splade.fairness import Group
from splade.surgery.auditing import MIN_TEXTS
from splade.surgery.closure import correlations
from splade.surgery.codes import Codes, Readings


@dataclass(frozen=True)
class SuspectWord:
    """A word that says more about a group than about others."""

    dimension: int
    name: str
    group: str
    difference: float
    """Mean contribution to the positive labels on texts of the group minus that on its background."""
    correlation: float
    """Of its strength with the group, over all texts."""
    centroid: float
    """Mean contribution to the positive labels over the texts that have one: its place in the class centroid."""
    same_sign: float
    """Share of the texts where it is active in which it speaks for the same side: the sign of `W_eff`."""
    texts: int
    """Texts in which it is active."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def suspect_words(
    readings: Readings,
    truth: Bool[ndarray, " N"],
    groups: Sequence[Group],
    name_of: NameOf,
    top: int = 15,
) -> list[SuspectWord]:
    """The words that differ most in what they say, for every group, the greatest difference first; each word once.

    Groups with too few texts for a rate are passed over.
    """
    found: dict[int, SuspectWord] = {}
    harmful = _mean(readings.contributions, truth)
    for group in groups:
        own, other = group.member & ~truth, group.background & ~truth
        if min(own.sum(), other.sum()) < MIN_TEXTS:
            continue
        known = group.member | group.background
        correlation = correlations(readings.codes[known], group.member[known].astype(float))
        difference = _mean(readings.contributions, own) - _mean(readings.contributions, other)
        for i in np.argsort(-np.abs(difference), kind="stable")[:top].tolist():
            if difference[i] == 0 or (i in found and abs(found[i].difference) >= abs(difference[i])):
                continue
            signs = np.sign(readings.contributions[:, [i]].data)
            found[i] = SuspectWord(
                dimension=i,
                name=name_of(i),
                group=group.name,
                difference=float(difference[i]),
                correlation=float(correlation[i]),
                centroid=float(harmful[i]),
                same_sign=float(max((signs > 0).mean(), (signs < 0).mean())) if len(signs) else 0.0,
                texts=len(signs),
            )
    return sorted(found.values(), key=lambda word: (-abs(word.difference), word.dimension))


def _mean(contributions: Codes, rows: Bool[ndarray, " N"]) -> Float[ndarray, " V"]:
    """Mean of each column over some rows; zero without rows."""
    return np.asarray(contributions[rows].sum(axis=0)).ravel() / max(1, int(rows.sum()))
