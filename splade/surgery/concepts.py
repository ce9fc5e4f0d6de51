"""Which texts speak of a concept: by an identity column, or by the words that stand in them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from splade.data import TextSplit
from splade.data.words import word_spans
from splade.suggest import did_you_mean


def concept_values(column: Sequence[float]) -> Float[ndarray, " N"]:
    """An identity column as 1 (one half or more), 0, or NaN where nobody was asked.

    Example: [0.5, 0.2, nan] -> [1, 0, nan]
    """
    values = np.asarray(column, dtype=float)
    return np.where(np.isnan(values), np.nan, (values >= 0.5).astype(float))


def concept_of(split: TextSplit, name: str) -> Float[ndarray, " N"]:
    """The concept of this name, a value per text; one that the texts do not have is refused."""
    known = split.identities or {}
    if name not in known:
        raise ValueError(
            f"the texts have no concept {name!r}{did_you_mean(name, known)} "
            f"They have: {', '.join(sorted(known)) or 'none; give the words that name it'}"
        )
    return concept_values(known[name])


def with_word_groups(split: TextSplit, words: Mapping[str, Sequence[str]]) -> TextSplit:
    """The texts with a group per entry, of which a text speaks if one of its words stands in it; others are kept.

    Example: `with_word_groups(split, {"muslim": ["muslim", "muslims"]})`
    """
    made = {name: tuple(float(mentions(text, some)) for text in split.texts) for name, some in words.items()}
    return replace(split, identities={**(split.identities or {}), **made}) if made else split


def mentions(text: str, words: Sequence[str]) -> bool:
    """Whether one of the words stands in a text, as a whole word and in any case."""
    wanted = {word.casefold() for word in words}
    return any(text[start:end].casefold() in wanted for start, end in word_spans(text))
