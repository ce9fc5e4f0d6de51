"""Context shifts: words that are not at their default, and how much of the contributions context makes."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from lexical_sae.evaluation.bootstrap import BootstrapMeans
from lexical_sae.evaluation.context.words import ReadTexts, WordActivity
from lexical_sae.evaluation.intervals import Interval

MATERIAL = 0.1
"""Where defaults are estimated, a change beyond this share of the mean |contribution| of a word is a shift."""
TOLERANCE = 1e-6
"""Where they are the model's own, anything but rounding is one."""


@dataclass(frozen=True)
class ShiftScores:
    """How many words context moves, and how far."""

    is_explicit: bool
    """Whether the defaults are the model's own; otherwise they are estimated from a word's other occurrences."""
    per_text: Interval
    """Words of a text that are not at their default."""
    texts_without: Interval
    """Share of texts with none."""
    context_share: Interval
    """|context part| / (|default part| + |context part|), of contributions to the predicted class."""


def measure_shifts(read: ReadTexts, seed: int = 0) -> ShiftScores:
    """Counted over words whose default is known.

    Example: a word whose default is +0.4 and which contributes -0.1 has a context part of -0.5, a share of 5/9
    """
    sizes = [float(np.abs(own.contributions).max()) for text in read.words for own in text.values() if own.features]
    least = TOLERANCE if read.is_explicit else MATERIAL * float(np.mean(sizes or [0.0]))
    counts, context, whole = [], [], []
    for reading, words, defaults in zip(read.readings, read.words, read.defaults, strict=True):
        known = {word: own for word, own in words.items() if word in defaults}
        counts.append(sum(is_shifted(own, defaults[word], least) for word, own in known.items()))
        default = {word: defaults[word].contributions[reading.label] for word in known}
        parts = [abs(own.contributions[reading.label] - default[word]) for word, own in known.items()]
        context.append(sum(parts))
        whole.append(sum(parts) + sum(map(abs, default.values())))
    means = BootstrapMeans(seed=seed)
    shifts = torch.tensor(counts, dtype=torch.float64)
    figures: Mapping[str, torch.Tensor] = {
        "shifts": shifts,
        "none": shifts == 0,
        "context": torch.tensor(context, dtype=torch.float64),
        "whole": torch.tensor(whole, dtype=torch.float64),
    }
    means.update(range(len(read)), figures)
    return ShiftScores(
        is_explicit=read.is_explicit,
        per_text=means["shifts"],
        texts_without=means.share("none"),
        context_share=means.ratio("context", "whole", of_shares=True),
    )


def is_shifted(own: WordActivity, default: WordActivity, least: float) -> bool:
    """Whether a word activates other features than by default, or contributes otherwise by more than `least`."""
    if {feature.dimension for feature in own.features} != {feature.dimension for feature in default.features}:
        return True
    return bool(np.abs(own.contributions - default.contributions).max(initial=0.0) > least)
