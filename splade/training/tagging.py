"""A split of tagged sentences as the training loop wants it."""

import functools
from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from splade.data import TaggedSplit
from splade.data.tagging import encode_tags
from splade.data.word_rows import WordRows, tokenise_words
from splade.models.layers.shapes import ShapeFeatures
from splade.training.tasks import Positions


def positions(
    tokenizer: PreTrainedTokenizerBase,
    split: TaggedSplit,
    tag_names: Sequence[str],
    max_length: int,
    shapes: ShapeFeatures | None = None,
) -> tuple[Positions, WordRows]:
    """The sentences with a tag at the first token of each word, in windows where they are long; and those rows."""
    rows = tokenise_words(tokenizer, split.tokens, max_length)
    ids = [encode_tags(tags, tag_names, f"sentence {number}") for number, tags in enumerate(split.tags)]
    described = None
    if shapes is not None:
        by_sentence = [shapes.describe(words) for words in split.tokens]
        described = functools.partial(rows.at_first_tokens, by_word=by_sentence.__getitem__)
    return Positions(rows.texts, rows.labels(ids), shapes=described), rows
