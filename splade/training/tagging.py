"""A split of tagged sentences as the training loop wants it."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool
from torch import Tensor
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
    described = None if shapes is None else shapes_by_token(rows, split.tokens, shapes)
    return Positions(rows.texts, rows.labels(ids), shapes=described), rows


def shapes_by_token(
    rows: WordRows, sentences: Sequence[Sequence[str]], shapes: ShapeFeatures
) -> list[Bool[Tensor, "_ S"]]:
    """Per row, the shapes of each word at its first token; none elsewhere."""
    by_sentence = [shapes.describe(words) for words in sentences]
    found = []
    for row, sentence in enumerate(rows.sentences):
        present = torch.zeros(len(rows.texts.ids[row]), len(shapes), dtype=torch.bool)
        for position, word in rows.first_tokens(row):
            present[position] = by_sentence[sentence][word]
        found.append(present)
    return found
