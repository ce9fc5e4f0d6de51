"""Does a classifier treat texts that mention a group worse than others? With confidence intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from lexical_sae.data import TextSplit
from lexical_sae.evaluation.collect import opened_to_corpus
from lexical_sae.evaluation.intervals import Interval
from lexical_sae.intervene.concepts.concept_labels import concept_values
from lexical_sae.intervene.concepts.fairness import (
    Decisions,
    Group,
    Weights,
    equalised_odds_difference,
    group_figures,
    rate,
    worst_fpr_gap,
)
from lexical_sae.intervene.concepts.word_matrix import EditedCodes, Predictions, decider, read_texts
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.progress import OnStep, silent

MIN_TEXTS = 10
"""A false positive rate over fewer texts than this is not reported."""
ROUNDS = 500
"""Resamples behind every interval."""
CELLS_AT_ONCE = 4_000_000
"""Bootstrap weights held in memory at a time."""


@dataclass(frozen=True)
class GroupAudit:
    """The figures of one group."""

    name: str
    texts: int
    negatives: int
    """Texts of the group without a positive label; false positives are counted among these."""
    is_too_small: bool
    figures: Mapping[str, Interval]
    """The figures of `lexical_sae.intervene.concepts.fairness.group_figures`; empty for a group that is too small."""


@dataclass(frozen=True)
class BiasAudit:
    """The figures of all groups, and the classifier's accuracy."""

    texts: int
    accuracy: Interval
    """Of positive against negative labels."""
    worst_fpr_gap: Interval
    """Largest difference between a group's false positive rate and its background's. The maximum of noisy gaps is
    biased upwards, so compare it with the same figure of another model, not with zero."""
    equalised_odds: Interval
    groups: tuple[GroupAudit, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def evaluate_bias(
    model: LexicalSAE, split: TextSplit, positive: Sequence[int], batch_size: int = 32, on_step: OnStep = silent
) -> BiasAudit:
    """The bias audit of a model.

    Args:
        model: The model.
        split: Texts with identities.
        positive: Labels that count as positive.
        batch_size: Texts per forward pass.
        on_step: Receives progress.

    Returns:
        Accuracy and gaps, overall and by group.

    Raises:
        ValueError: The texts have no identity columns.

    Example: `evaluate_bias(model, dataset.test, positive=[1]).worst_fpr_gap`
    """
    groups = groups_of(split)
    model, _ = opened_to_corpus(model, split.texts)
    codes = read_texts(model, split.texts, positive, batch_size, on_step).codes
    predictions = decider(model, positive)(EditedCodes.untouched(codes))
    return audit(decisions_on(predictions, is_positive(split.labels, positive)), groups)


def groups_of(split: TextSplit) -> tuple[Group, ...]:
    """The groups of texts with identities: members have one half or more; texts without a value are in neither side."""
    if not split.identities:
        raise SettingsError(
            "these texts have no identity columns, so a bias audit is not possible: no gap would be found, whatever "
            "the model does. Give data with identities (columns 'identity:<group>', docs/data.md), or name groups by "
            "their words"
        )
    values = {name: concept_values(column) for name, column in split.identities.items()}
    return tuple(Group(name, column == 1, column == 0) for name, column in values.items())


def is_positive(labels: Sequence[int], positive: Sequence[int]) -> Bool[ndarray, " N"]:
    """Which labels count as positive."""
    return np.isin(np.asarray(labels), list(positive))


def decisions_on(predictions: Predictions, truth: Bool[ndarray, " N"]) -> Decisions:
    """Predictions with the true labels."""
    return Decisions(truth, predictions.flagged, predictions.score)


def large_enough(decisions: Decisions, groups: Sequence[Group]) -> tuple[Group, ...]:
    """The groups with enough texts, in group and background, for a false positive rate."""
    sides = ((~decisions.truth & group.member, ~decisions.truth & group.background, group) for group in groups)
    return tuple(group for own, other, group in sides if min(own.sum(), other.sum()) >= MIN_TEXTS)


def audit(decisions: Decisions, groups: Sequence[Group], rounds: int = ROUNDS, seed: int = 0) -> BiasAudit:
    """Figures of every group with 95 % bootstrap intervals over texts; all are resampled together.

    Args:
        decisions: Predictions with the true labels.
        groups: The groups.
        rounds: Bootstrap resamples.
        seed: Seed of the resamples.

    Returns:
        Accuracy and gaps, overall and by group; groups that are too small have none.
    """
    usable = large_enough(decisions, groups)
    names = {group.name for group in usable}
    all_texts = np.ones(len(decisions.truth), dtype=bool)

    def figures(weights: Weights) -> dict[str, Float[ndarray, " R"]]:
        found = {
            "accuracy": rate(decisions.flagged == decisions.truth, all_texts, weights),
            "worst_fpr_gap": worst_fpr_gap(decisions, usable, weights),
            "equalised_odds": equalised_odds_difference(decisions, usable, weights),
        }
        for group in usable:
            own = group_figures(decisions, group, weights)
            found |= {f"{group.name}/{name}": values for name, values in own.items()}
        return found

    intervals = bootstrap(figures, len(all_texts), rounds, seed)
    audits = [
        GroupAudit(
            group.name,
            int(group.member.sum()),
            int((group.member & ~decisions.truth).sum()),
            group.name not in names,
            {key.rpartition("/")[2]: i for key, i in intervals.items() if key.rpartition("/")[0] == group.name},
        )
        for group in groups
    ]
    return BiasAudit(
        texts=len(all_texts),
        accuracy=intervals["accuracy"],
        worst_fpr_gap=intervals["worst_fpr_gap"],
        equalised_odds=intervals["equalised_odds"],
        groups=tuple(audits),
    )


def bootstrap(figures: Any, count: int, rounds: int = ROUNDS, seed: int = 0) -> dict[str, Interval]:
    """Named figures of texts with 95 % percentile intervals; `figures` maps weights [R, N] to one number per line."""
    rng = np.random.default_rng(seed)
    whole = figures(np.ones((1, count)))
    step = max(1, CELLS_AT_ONCE // max(1, count))
    parts = [figures(rng.poisson(1.0, (min(step, rounds - at), count)).astype(float)) for at in range(0, rounds, step)]
    return {
        name: _interval(float(values[0]), np.concatenate([p[name] for p in parts]), count)
        for name, values in whole.items()
    }


def _interval(value: float, resampled: Float[ndarray, " R"], count: int) -> Interval:
    known = resampled[np.isfinite(resampled)]
    if not len(known) or np.isnan(value):
        return Interval(value, None, None, count)
    low, high = np.quantile(known, [0.025, 0.975])
    return Interval(value, float(low), float(high), count)
