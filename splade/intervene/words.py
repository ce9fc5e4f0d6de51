"""From words as people name them to the dimensions that stand for them."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Bool

from splade.models.lexical_sae import LexicalSAE
from splade.models.word_views import document_table

Words = str | int | Iterable[str | int]
"""One word or several: a string is looked up through the tokenizer, a number is a token id or a dimension."""


@dataclass(frozen=True)
class FoundWord:
    """A word, and every dimension that stands for it."""

    word: str
    dimensions: tuple[int, ...]
    """Case variants, the regular plural or singular, and all sense slots included."""


def listed(words: Words) -> list[str | int]:
    """One word or several as a list, whatever they came in."""
    return [words] if isinstance(words, str | int) else list(words)


def opened_to_words(model: LexicalSAE, words: Words) -> LexicalSAE:
    """The model or, with literal words, a view in which words that it never met have dimensions by their spelling.

    The other forms of each word get one too: what is closed under the name of a word stays closed in all its forms.

    Example: `opened_to_words(model, "zyzzyva").dimensions.find("zyzzyvas")`
    """
    split_forms = model.dimensions.vocabulary.split_forms
    if model.literal is None:
        return model
    return model.opened_to([way for word in listed(words) if isinstance(word, str) for way in split_forms(word)])


def suppressed_mask(model: LexicalSAE) -> Bool[torch.Tensor, " V"]:
    """Dimensions that were closed by somebody; literal words that are closed because they have no weight are not."""
    if model.literal is None:
        return model.gate.closed
    return model.gate.closed & (document_table(model).word_vectors != 0).any(-1)


def find_words(model: LexicalSAE, words: Words) -> tuple[FoundWord, ...]:
    """The dimensions of each word; words that have none, and words given twice, are refused together in one message.

    Words that a model with literal words never met have dimensions in `opened_to_words(model, words)`.

    A word stands for its case variants and its regular plural or singular as well. The exact name of a dimension that
    is no whole word (`##ing`, `bank@sense1`) and a number stand for that dimension alone, with its sense slots if any.

    Example: `find_words(model, ["film", "bank@sense1"])`
    """
    asked = listed(words)
    if not asked:
        raise ValueError("there is no word to look for; name at least one")
    found: list[FoundWord] = []
    problems = _given_twice(asked)
    for word in asked:
        try:
            found.append(_found(model, word))
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise ValueError("\n".join(dict.fromkeys(problems)))
    return tuple(found)


def same_word(word: str | int) -> str | int:
    """Equal for two spellings that a person would call the same: case and spaces around do not count."""
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
        raise ValueError(f"{index!r} is not a dimension; the sparse layer has {len(table)}, counted from 0")
    if not table.feature_mask[index]:
        raise ValueError(f"dimension {index} is the special token {table[index].name!r}, not a word")
    slots = () if model.expander is None else model.expander.slot_columns(model.dimensions.num_words).tolist()
    own = next((tuple(row) for row in slots if row[0] == index), (index,))
    return FoundWord(table[index].name, own)
