"""Does the score change when one identity word of the text is swapped for another?

The text is changed, not the activations, so this includes every way in which the encoder, not only the word's own
dimension, carries the identity to the decision.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lexical_sae.data.words import word_spans
from lexical_sae.evaluation.intervals import Interval, mean_and_interval, share_interval
from lexical_sae.intervene.concepts.word_matrix import Predictions
from lexical_sae.utils.errors import SettingsError


@dataclass(frozen=True)
class SwappedTexts:
    """The texts that contain a word to swap, before and after."""

    rows: tuple[int, ...]
    """Their places among all texts."""
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class SwapEffect:
    """The effect of swapping on predictions; zero is full invariance."""

    texts: int
    change: Interval
    """Mean absolute change of the positive labels' probability."""
    flipped: Interval
    """Share of texts whose label changes."""


def swap_words(texts: Sequence[str], pairs: Mapping[str, str]) -> SwappedTexts:
    """The texts with words swapped in both directions, whole words only and in their case; other texts are left out.

    Example: `swap_words(["Muslim men"], {"muslim": "christian"}).after` -> `("Christian men",)`
    """
    both = _both_ways(pairs)
    found = [(row, text, _swapped(text, both)) for row, text in enumerate(texts)]
    changed = [(row, text, new) for row, text, new in found if new != text]
    rows, before, after = zip(*changed, strict=True) if changed else ((), (), ())
    return SwappedTexts(rows, before, after)


def swap_effect(before: Predictions, after: Predictions) -> SwapEffect:
    """The change of predictions from texts to swapped texts."""
    change = np.abs(before.score - after.score)
    flipped = (before.predicted != after.predicted).astype(float)
    if not len(change):
        none = Interval(float("nan"), None, None, 0)
        return SwapEffect(0, none, none)
    ends = share_interval(flipped.tolist(), [1.0] * len(flipped))
    return SwapEffect(
        len(change), mean_and_interval(change.tolist()), Interval(float(flipped.mean()), *ends, len(flipped))
    )


def _both_ways(pairs: Mapping[str, str]) -> dict[str, str]:
    both: dict[str, str] = {}
    for one, other in pairs.items():
        for word, partner in ((one.casefold(), other.casefold()), (other.casefold(), one.casefold())):
            if not word.strip() or word == partner:
                raise SettingsError(
                    f"cannot swap {one!r} with {other!r}; give two different words, as in muslim:christian"
                )
            if both.setdefault(word, partner) != partner:
                raise SettingsError(f"{word!r} is to be swapped with {both[word]!r} and with {partner!r}; choose one")
    return both


def _swapped(text: str, both: Mapping[str, str]) -> str:
    parts, at = [], 0
    for start, end in word_spans(text):
        word = text[start:end]
        if partner := both.get(word.casefold()):
            parts += [text[at:start], _in_case_of(word, partner)]
            at = end
    return "".join([*parts, text[at:]])


def _in_case_of(word: str, partner: str) -> str:
    if word.isupper() and len(word) > 1:
        return partner.upper()
    return partner.capitalize() if word[:1].isupper() else partner
