"""Label leakage: what neutral words activate says more of the label than that they are there.

A neutral word's presence is uninformative. If the label can be told from *which* features neutral words activate, or
*how strongly*, it came from their context, and the features' names are not what the model decides by.

1. In points: accuracy from what neutral words activate (the greater of a linear probe and the model's own head given
   nothing else) minus the greater of the same probe on their presence and the own head with these words at their
   defaults. A table that generalises from word to word is not a leak. Control: shuffled labels.
2. In bits: I(activations; label) - I(presence; label), both from the probe's cross-entropy (`probe`). Control: each
   word's activations are exchanged among the texts that it occurs in, so that presence stays and context goes.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray

from lexical_sae.evaluation.bootstrap import BootstrapMeans
from lexical_sae.evaluation.context.columns import activation_columns, exchanged_activities, neutral_activities
from lexical_sae.evaluation.context.model import ContextModel
from lexical_sae.evaluation.context.probe import cross_validated, label_bits, sparse_table
from lexical_sae.evaluation.context.words import ReadTexts
from lexical_sae.evaluation.intervals import Interval, mean_and_interval

SHUFFLES = 10
"""Permutations of the labels for the control."""
REFERENCE = "Parisini et al. 2025, arXiv:2504.14094"


@dataclass(frozen=True)
class LeakageScores:
    """How much neutral words say of the label through what they activate."""

    neutral_words: int
    """Different ones in the texts."""
    points: Interval
    """The greater of probe and own head, minus the greater of both context-free; as a share of texts."""
    shuffled_labels: Interval
    """The same for shuffled labels: mean of several permutations, with its interval over them. One may be unlucky."""
    probe: Interval
    """The probe on what neutral words activate."""
    probe_on_presence: Interval
    own_head: Interval
    """The model's own head given what neutral words activate, and nothing else."""
    own_head_at_defaults: Interval
    contribution_share: Interval
    """Share of |contribution| to the predicted class that is on neutral words."""
    bits: Interval
    """I(activations; label) - I(presence; label)."""
    shuffled_activations: Interval
    """The same with each word's activations exchanged among its texts; below zero by what the noise costs the probe."""
    label_bits: float
    """Entropy of the label."""


def measure_leakage(
    model: ContextModel, read: ReadTexts, neutral: frozenset[str], seed: int = 0
) -> LeakageScores | None:
    """Leakage through the neutral words of the texts; None without any, or where all labels are the same."""
    activities = neutral_activities(read, neutral)
    present: list[dict[Any, float]] = [dict.fromkeys(text, 1.0) for text in activities]
    words = {word for text in activities for word in text}
    if not words or len(np.unique(read.labels)) < 2:
        return None
    random = np.random.default_rng(seed)
    activations, presence = sparse_table(activation_columns(activities)), sparse_table(present)
    exchanged = sparse_table(activation_columns(exchanged_activities(activities, random)))
    own = model.decide(read.features(words)).argmax(1)
    at_defaults = model.decide(read.features(words, at_default=True)).argmax(1)
    probed, by_presence = (cross_validated(columns, read.labels, seed) for columns in (activations, presence))
    figures: dict[str, ndarray] = {"probe": probed.is_right, "presence": by_presence.is_right}
    figures |= {"own": own == read.labels, "defaults": at_defaults == read.labels}
    figures |= {"activation bits": probed.bits, "presence bits": by_presence.bits}
    figures["exchanged bits"] = cross_validated(exchanged, read.labels, seed).bits
    figures["label bits"] = label_bits(read.labels)
    figures["neutral"], figures["all"] = _contribution_sizes(read, words)
    means = BootstrapMeans(seed=seed)
    means.update(range(len(read)), {name: torch.as_tensor(values) for name, values in figures.items()})
    return LeakageScores(
        neutral_words=len(words),
        points=means.combined(["probe", "own", "presence", "defaults"], _points, of_shares=True),
        shuffled_labels=mean_and_interval(
            [
                _shuffled_points(activations, presence, own, at_defaults, random.permutation(read.labels), seed)
                for _ in range(SHUFFLES)
            ]
        ),
        probe=means.share("probe"),
        probe_on_presence=means.share("presence"),
        own_head=means.share("own"),
        own_head_at_defaults=means.share("defaults"),
        contribution_share=means.ratio("neutral", "all", of_shares=True),
        bits=_bits(means, "activation bits"),
        shuffled_activations=_bits(means, "exchanged bits"),
        label_bits=means["label bits"].mean,
    )


def _points(m: Float[ndarray, "R 4"]) -> Float[ndarray, " R"]:
    """The greater of the first two accuracies, minus the greater of the others. Example: 7, 8, 5, 6 -> 2"""
    return m[:, :2].max(1) - m[:, 2:].max(1)


def _shuffled_points(
    activations: Any,
    presence: Any,
    own: Int[ndarray, " T"],
    at_defaults: Int[ndarray, " T"],
    labels: Int[ndarray, " T"],
    seed: int,
) -> float:
    probed, by_presence = (cross_validated(columns, labels, seed).is_right for columns in (activations, presence))
    right = (probed, own == labels, by_presence, at_defaults == labels)
    return float(_points(np.array([[part.mean() for part in right]]))[0])


def _bits(means: BootstrapMeans, name: str) -> Interval:
    """Information is never less than zero: the estimate may be, where the probe learns nothing."""

    def gain(m: Float[ndarray, "R 3"]) -> Float[ndarray, " R"]:
        return np.maximum(0, m[:, 2] - m[:, 0]) - np.maximum(0, m[:, 2] - m[:, 1])

    return means.combined([name, "presence bits", "label bits"], gain)


def _contribution_sizes(read: ReadTexts, words: set[str]) -> tuple[Float[ndarray, " T"], Float[ndarray, " T"]]:
    """|contribution| to the predicted class of each text: of its neutral words, and of all."""
    chosen, every = read.features(words), read.features()
    return tuple(np.array([sum(abs(f.contribution) for f in text) for text in texts]) for texts in (chosen, every))  # pyright: ignore[reportReturnType]
