"""The dimensions of words, by name."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Bool

from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.word_views import document_table
from lexical_sae.utils.errors import SettingsError

Words = str | int | Iterable[str | int]
"""One word or several: a string is looked up through the tokenizer, a number is a token id or a dimension."""


@dataclass(frozen=True)
class FoundWord:
    """A word with all its dimensions."""

    word: str
    dimensions: tuple[int, ...]
    """Case variants, the regular plural or singular, and all sense slots included."""


def listed(words: Words) -> list[str | int]:
    """One word or several, as a list."""
    return [words] if isinstance(words, str | int) else list(words)


def opened_to_words(model: LexicalSAE, words: Words) -> LexicalSAE:
    """The model or, with literal words, a view in which unseen words have dimensions by their spelling.

    The other forms of each word get one too, so that suppressing a word covers all of them.

    Example: `opened_to_words(model, "zyzzyva").dimensions.find("zyzzyvas")`
    """
    split_forms = model.dimensions.vocabulary.split_forms
    if model.literal is None:
        return model
    return model.opened_to([way for word in listed(words) if isinstance(word, str) for way in split_forms(word)])


def suppressed_mask(model: LexicalSAE) -> Bool[torch.Tensor, " V"]:
    """Dimensions suppressed by an edit; literal words that are merely without weight do not count."""
    if model.literal is None:
        return model.gate.closed
    return model.gate.closed & (document_table(model).word_vectors != 0).any(-1)


def find_words(model: LexicalSAE, words: Words) -> tuple[FoundWord, ...]:
    """The dimensions of each word.

    A word includes its case variants and its regular plural or singular. The exact name of a dimension that is not a
    whole word (`##ing`, `bank@sense1`) and a number mean that dimension alone, with its sense slots if any. In a model
    with literal words, unseen words have dimensions in `opened_to_words(model, words)`.

    Args:
        model: The model.
        words: One word or several.

    Returns:
        Each word with its dimensions.

    Raises:
        ValueError: Words without a dimension, and duplicates, all in one message.

    Example: `find_words(model, ["film", "bank@sense1"])`
    """
    given = listed(words)
    if not given:
        raise SettingsError("there is no word to look for; name at least one")
    found: list[FoundWord] = []
    problems = _given_twice(given)
    for word in given:
        try:
            found.append(_found(model, word))
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise SettingsError("\n".join(dict.fromkeys(problems)))
    return tuple(found)


def same_word(word: str | int) -> str | int:
    """The word without case and surrounding spaces: equal for spellings of the same word."""
    return word.strip().casefold() if isinstance(word, str) else word


def _given_twice(words: list[str | int]) -> list[str]:
    keys = [same_word(word) for word in words]
    return [
        f"{word!r} is given twice; name it once" for word, key in zip(words, keys, strict=True) if keys.count(key) > 1
    ]


def _found(model: LexicalSAE, word: str | int) -> FoundWord:
    table = model.dimensions
    if not isinstance(word, str):
        return _of_index(model, word)
    try:
        return FoundWord(word.strip(), table.find(word))
    except ValueError:
        exact = next((i for i in range(len(table)) if table[i].name == word.strip()), None)
        if exact is None or not table.feature_mask[exact]:
            raise
        return _of_index(model, exact)


def _of_index(model: LexicalSAE, index: int) -> FoundWord:
    table = model.dimensions
    # True would count as 1.
    if isinstance(index, bool) or not 0 <= index < len(table):
        raise SettingsError(f"{index!r} is not a dimension; the sparse layer has {len(table)}, counted from 0")
    if not table.feature_mask[index]:
        raise SettingsError(f"dimension {index} is the special token {table[index].name!r}, not a word")
    slots = () if model.expander is None else model.expander.slot_columns(model.dimensions.num_words).tolist()
    own = next((tuple(row) for row in slots if row[0] == index), (index,))
    return FoundWord(table[index].name, own)
