"""Group fairness of a binary decision: pure functions of truth, decision, score and membership.

A group is compared with its background, the texts that do not mention it. Every function takes weights [R, N], one
row per resample of the texts, and returns one figure per row: `np.ones((1, N))` gives the figure of the texts
themselves. A rate over no texts is NaN.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

REFERENCE = "Borkan et al. 2019, arXiv:1903.04561; Hardt et al. 2016, arXiv:1610.02413"

Weights = Float[ndarray, "R N"]
Figure = Float[ndarray, " R"]
Flags = Bool[ndarray, " N"]


@dataclass(frozen=True)
class Decisions:
    """Predictions and true labels of texts."""

    truth: Flags
    """Whether the text has the label that counts as positive, such as "toxic"."""
    flagged: Flags
    """Whether it was predicted to have such a label."""
    score: Float[ndarray, " N"]
    """Greater for texts that are more likely positive."""


@dataclass(frozen=True)
class Group:
    """Texts that mention an identity, and those known not to; a text in neither was not annotated."""

    name: str
    member: Flags
    background: Flags


def rate(flagged: Flags, among: Flags, weights: Weights) -> Figure:
    """Share of `flagged` among some of the texts.

    Example: flagged=[1, 0, 1], among=[1, 1, 0], every text once -> 0.5
    """
    return _divide(weights[:, flagged & among].sum(1), weights[:, among].sum(1))


def group_figures(decisions: Decisions, group: Group, weights: Weights) -> dict[str, Figure]:
    """Rates of a group, its gaps against background and against all texts, and the three AUCs of Borkan et al.

    BPSN ranks negative texts of the group against positive ones of the background; BNSP the reverse.
    """
    truth, flagged, score = decisions.truth, decisions.flagged, decisions.score
    member, background = group.member, group.background
    fpr, fpr_background = (rate(flagged, ~truth & side, weights) for side in (member, background))
    tpr, tpr_background = (rate(flagged, truth & side, weights) for side in (member, background))
    gaps = np.stack([np.abs(fpr - fpr_background), np.abs(tpr - tpr_background)])
    return {
        "fpr": fpr,
        "tpr": tpr,
        "fpr_gap_background": fpr - fpr_background,
        "fpr_gap_overall": fpr - rate(flagged, ~truth, weights),
        "tpr_gap_background": tpr - tpr_background,
        "equalised_odds": gaps.max(0),
        "subgroup_auc": area_under_curve(truth & member, ~truth & member, score, weights),
        "bpsn_auc": area_under_curve(truth & background, ~truth & member, score, weights),
        "bnsp_auc": area_under_curve(truth & member, ~truth & background, score, weights),
    }


def worst_fpr_gap(decisions: Decisions, groups: Iterable[Group], weights: Weights) -> Figure:
    """Largest difference between a group's false positive rate and its background's; zero without groups."""
    harmless = ~decisions.truth
    gaps = [
        np.abs(
            rate(decisions.flagged, harmless & g.member, weights)
            - rate(decisions.flagged, harmless & g.background, weights)
        )
        for g in groups
    ]
    return np.nan_to_num(np.stack(gaps)).max(0) if gaps else np.zeros(len(weights))


def equalised_odds_difference(decisions: Decisions, groups: Iterable[Group], weights: Weights) -> Figure:
    """The greater of two ranges over groups: that of false and that of true positive rates. Zero is equal treatment."""
    groups = list(groups)
    if not groups:
        return np.zeros(len(weights))
    ranges = []
    for side in (decisions.truth, ~decisions.truth):
        rates = np.stack([rate(decisions.flagged, side & group.member, weights) for group in groups])
        ranges.append(
            np.where(np.isnan(rates), -np.inf, rates).max(0) - np.where(np.isnan(rates), np.inf, rates).min(0)
        )
    return np.stack(ranges).max(0).clip(min=0)


def area_under_curve(positive: Flags, negative: Flags, score: Float[ndarray, " N"], weights: Weights) -> Figure:
    """Probability that a positive text has a greater score than a negative one; ties count half.

    Example: positives at 0.9 and 0.4, a negative at 0.5 -> 0.5
    """
    used = positive | negative
    order = np.argsort(score[used], kind="stable")
    ordered = score[used][order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(ordered) else np.zeros(0, dtype=int)
    up, down = (np.where(side[used][order], weights[:, used][:, order], 0.0) for side in (positive, negative))
    if not len(starts):
        return np.full(len(weights), np.nan)
    up, down = (np.add.reduceat(side, starts, axis=1) for side in (up, down))
    below = np.cumsum(down, axis=1) - down / 2
    return _divide((up * below).sum(1), up.sum(1) * down.sum(1))


def _divide(top: Figure, bottom: Figure) -> Figure:
    return np.divide(top, bottom, out=np.full(len(top), np.nan), where=bottom > 0)
