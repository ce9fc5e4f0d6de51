"""What neutral words activate, as columns that a probe can read."""

from collections import defaultdict
from typing import Any

import numpy as np

from lexical_sae.evaluation.context.words import ReadTexts, WordActivity

NEGLIGIBLE = 1e-6
"""Of its size: what varies by less is always the same."""
Activities = list[dict[str, tuple[WordActivity, WordActivity | None]]]
"""Per text, what each neutral word activates, and its default where that is the model's own."""


def neutral_activities(read: ReadTexts, neutral: frozenset[str]) -> Activities:
    return [
        {word: (own, defaults.get(word) if read.is_explicit else None) for word, own in text.items() if word in neutral}
        for text, defaults in zip(read.words, read.defaults, strict=True)
    ]


def activation_columns(texts: Activities) -> list[dict[Any, float]]:
    """Per text, which features are active (1 each), and how strongly: by how much they differ from the usual.

    The second is, in standard deviations where a feature is active, its activation from its mean; for a word with an
    explicit default, the context part of its contributions, in root mean squares. Both are zero for what is always the
    same, so that the columns of a table without context are those of presence.
    """
    found: list[dict[Any, float]] = []
    for text in texts:
        row: dict[Any, float] = {}
        for word, (own, default) in text.items():
            row |= dict.fromkeys(((feature.dimension,) for feature in own.features), 1.0)
            if default is None:
                for feature in own.features:
                    key = feature.dimension, "activation"
                    row[key] = max(feature.activation, row.get(key, 0.0))
            else:
                for c, part in enumerate(own.contributions - default.contributions):
                    row[word, c, "context"] = float(part)
        found.append(row)
    return _standardised(found)


def _standardised(rows: list[dict[Any, float]]) -> list[dict[Any, float]]:
    values: dict[Any, list[float]] = defaultdict(list)
    for row in rows:
        for key, value in row.items():
            values[key].append(value)
    scales = {}
    for key, those in values.items():
        mean = float(np.mean(those)) if key[-1] == "activation" else 0.0
        scales[key] = mean, float(np.sqrt(np.mean(np.square(np.subtract(those, mean)))))
    return [
        {key: placed for key, value in row.items() if (placed := _placed(key, value, *scales[key]))} for row in rows
    ]


def _placed(key: Any, value: float, mean: float, scale: float) -> float:
    if len(key) == 1:
        return value
    return 0.0 if scale <= NEGLIGIBLE * max(1.0, abs(mean)) else (value - mean) / scale


def exchanged_activities(texts: Activities, random: np.random.Generator) -> Activities:
    """Every word's activities, in each other's texts at random."""
    places: dict[str, list[int]] = defaultdict(list)
    for row, text in enumerate(texts):
        for word in text:
            places[word].append(row)
    found: Activities = [{} for _ in texts]
    for word, rows in places.items():
        for row, other in zip(rows, random.permutation(rows).tolist(), strict=True):
            found[row][word] = texts[other][word]
    return found
