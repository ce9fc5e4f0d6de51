"""Words that may make a classifier treat a group differently, found by their contributions, not their names.

A false positive comes from words that contribute to the positive label. So a word is suspect if, on texts without that
label, it contributes more where the group is mentioned than where it is not.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from lexical_sae.evaluation.corpus.lexicon import NameOf
from lexical_sae.intervene.concepts.bias_audit import MIN_TEXTS
from lexical_sae.intervene.concepts.fairness import Group
from lexical_sae.intervene.concepts.word_matrix import Codes, Readings
from lexical_sae.intervene.concepts.word_sets import correlations


@dataclass(frozen=True)
class SuspectWord:
    """A word whose contributions differ between a group and its background."""

    dimension: int
    name: str
    group: str
    difference: float
    """Mean contribution to the positive labels on texts of the group minus that on its background."""
    correlation: float
    """Of its activation with the group, over all texts."""
    centroid: float
    """Mean contribution to the positive labels over the texts that have one: its place in the class centroid."""
    same_sign: float
    """Share of its active texts in which its contribution has the more frequent sign (that of `W_eff`)."""
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
    """The words whose contributions differ most between any group and its background, the greatest difference first.

    Args:
        readings: Activations and contributions of the texts.
        truth: Texts with a positive label.
        groups: Groups to look at; those with too few texts for a rate are skipped.
        name_of: Gives the name of a dimension.
        top: Words per group.

    Returns:
        Suspect words; each word once, with the group where it differs most.
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
