"""Which texts mention a concept: by an identity column, or by words in them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from lexical_sae.data import TextSplit
from lexical_sae.data.words import word_spans
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.suggest import did_you_mean


def concept_values(column: Sequence[float]) -> Float[ndarray, " N"]:
    """An identity column as 1 (one half or more), 0, or NaN where it was not annotated.

    Example: [0.5, 0.2, nan] -> [1, 0, nan]
    """
    values = np.asarray(column, dtype=float)
    return np.where(np.isnan(values), np.nan, (values >= 0.5).astype(float))


def concept_of(split: TextSplit, name: str) -> Float[ndarray, " N"]:
    """The concept of this name, a value per text.

    Raises:
        ValueError: The texts have no such concept.
    """
    known = split.identities or {}
    if name not in known:
        raise SettingsError(
            f"the texts have no concept {name!r}{did_you_mean(name, known)} "
            f"They have: {', '.join(sorted(known)) or 'none; give the words that name it'}"
        )
    return concept_values(known[name])


def with_word_groups(split: TextSplit, words: Mapping[str, Sequence[str]]) -> TextSplit:
    """The texts with one more group per entry; a text belongs to a group if it contains one of its words.

    Example: `with_word_groups(split, {"muslim": ["muslim", "muslims"]})`
    """
    made = {name: tuple(float(mentions(text, some)) for text in split.texts) for name, some in words.items()}
    return replace(split, identities={**(split.identities or {}), **made}) if made else split


def mentions(text: str, words: Sequence[str]) -> bool:
    """Whether a text contains one of the words, as a whole word and in any case."""
    wanted = {word.casefold() for word in words}
    return any(text[start:end].casefold() in wanted for start, end in word_spans(text))
