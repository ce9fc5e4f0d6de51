"""The data of a run: texts with a label each, with a tag per word, or both. The loop treats all alike."""

import functools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from lexical_sae.data import TaggedSplit
from lexical_sae.data.batches import TokenizedTexts, shuffled_buckets
from lexical_sae.data.tagging import encode_tags
from lexical_sae.data.word_rows import WordRows, tokenize_words
from lexical_sae.models.layers.shapes import ShapeFeatures
from lexical_sae.models.lexical_sae import CLASSIFY, TAG, LexicalSAE
from lexical_sae.outputs.kind import Targets
from lexical_sae.training.samples import Encoded, ReadTokens, samples_of
from lexical_sae.utils.errors import DataError

IGNORED = -100
"""Stands for the tag of a position that carries none: special tokens, and all but the first piece of a word."""


@runtime_checkable
class Task(Protocol):
    """Texts with what is to be learned about them."""

    @property
    def texts(self) -> TokenizedTexts: ...
    @property
    def heads(self) -> tuple[str, ...]:
        """Names of the heads that decide on the samples."""
        ...

    def content(self) -> Iterator[bytes]:
        """All that is learned from, in order: the same bytes for the same data."""
        ...

    def samples(self, rows: Sequence[int]) -> float:
        """How many samples the texts in these rows hold, which is how much they count in a mean over texts."""
        ...

    def batches(self, size: int, generator: np.random.Generator, short_first: float) -> list[list[int]]:
        """All rows in random batches of about this size; see `shuffled_buckets`. Their number is always the same."""
        ...

    def alike(self, rows: Sequence[int]) -> list[list[int]]:
        """The rows in groups whose samples one head decides on, none of them empty."""
        ...

    def encode(self, model: LexicalSAE, rows: Sequence[int], *, live_only: bool = False) -> Encoded:
        """The samples of the texts in rows that are alike; `live_only` as in `LexicalSAE.encode_document`."""
        ...


class OfOneHead:
    """What tasks have in common whose samples are all decided on by one head."""

    texts: TokenizedTexts
    head: str

    @property
    def heads(self) -> tuple[str, ...]:
        return (self.head,)

    def batches(self, size: int, generator: np.random.Generator, short_first: float) -> list[list[int]]:
        return shuffled_buckets(self.texts, size, generator, short_first)

    def alike(self, rows: Sequence[int]) -> list[list[int]]:
        return [list(rows)]


@dataclass(frozen=True)
class Documents(OfOneHead):
    """Texts with one label each."""

    texts: TokenizedTexts
    labels: Targets
    """What is to be learned of each, by the output kind of the model: of classes, their places."""
    head: str = CLASSIFY
    num_made: int = 0
    """How many of the texts, the last ones, were made by rule: context learns from them, a table of words does not."""
    weights: Float[Tensor, " T"] | None = None
    """How much each text counts in the cross-entropy; None where all count the same."""
    most_windows: int | None = None
    """Of a text that is longer than a window, how many the encoder reads in training, at random; None reads all."""

    def given(self) -> "Documents":
        """The texts that were not made by rule."""
        count = len(self.texts) - self.num_made
        texts = TokenizedTexts(self.texts.ids[:count], self.texts.tokens_cut[:count], self.texts.pad_id)
        weights = None if self.weights is None else self.weights[:count]
        return Documents(texts, self.labels[:count], self.head, weights=weights, most_windows=self.most_windows)

    def content(self) -> Iterator[bytes]:
        yield json.dumps([self.texts.ids, self.labels.tolist()]).encode()
        if self.weights is not None:
            yield json.dumps(self.weights.tolist()).encode()

    def samples(self, rows: Sequence[int]) -> int:
        return len(rows)

    def encode(self, model: LexicalSAE, rows: Sequence[int], *, live_only: bool = False) -> Encoded:
        device = next(model.parameters()).device
        batch = self.texts.batch(rows)
        input_ids, mask = batch.input_ids.to(device), batch.attention_mask.to(device)
        tokens = ReadTokens.of(model, input_ids, mask.bool(), self.most_windows if model.training else None)
        document = model.encode_document(input_ids, mask, tokens.states, live_only=live_only, is_read=tokens.is_read)
        labels = self.labels[batch.rows].to(device)
        encoded = samples_of(model, document, model.own_words(input_ids), labels, tokens.mean_states(), self.head)
        weights = None if self.weights is None else self.weights[batch.rows].to(device)
        is_made = (torch.as_tensor(batch.rows) >= len(self.texts) - self.num_made).to(device)
        return replace(encoded, tokens=tokens, is_made=is_made, weights=weights)


@dataclass(frozen=True)
class Positions(OfOneHead):
    """Texts with a tag at some positions, `IGNORED` at the others; a sample is a tagged position."""

    texts: TokenizedTexts
    tags: Sequence[Sequence[int]]
    head: str = TAG
    shapes: Callable[[Sequence[int]], Bool[Tensor, "B L S"]] | None = None
    """Which shapes the word at each position of some texts has, padded like them; for models with shape features."""

    def content(self) -> Iterator[bytes]:
        yield json.dumps([self.texts.ids, self.tags]).encode()
        if self.shapes is not None:
            yield from (self.shapes([row]).numpy().tobytes() for row in range(len(self.texts)))

    def samples(self, rows: Sequence[int]) -> int:
        return sum(tag != IGNORED for row in rows for tag in self.tags[row])

    def encode(self, model: LexicalSAE, rows: Sequence[int], *, live_only: bool = False) -> Encoded:
        device = next(model.parameters()).device
        batch = self.texts.batch(rows)
        labels = torch.full(batch.input_ids.shape, IGNORED)
        for i, row in enumerate(rows):
            labels[i, : len(self.tags[row])] = torch.tensor(self.tags[row])
        chosen = labels != IGNORED
        input_ids, mask, at = (part.to(device) for part in (batch.input_ids, batch.attention_mask, chosen))
        shapes = None if self.shapes is None else self.shapes(rows).to(device)
        states = model.encoder_states(input_ids, mask, shapes)
        found = model.encode_at(input_ids, mask, at, states, shapes, live_only=live_only)
        own = model.own_words(input_ids)[at][:, None]
        return samples_of(model, found, own, labels[chosen].to(device), states[at], self.head)


@dataclass(frozen=True)
class BothTasks:
    """Documents and tagged positions for one model: a step holds some of each, and both tasks count the same.

    Rows are those of the documents, then those of the tagged texts.
    """

    documents: Documents
    positions: Positions

    def __post_init__(self) -> None:
        if not len(self.documents.texts) or not self._tagged:
            raise DataError(
                f"learning both tasks needs samples of both, got {len(self.documents.texts)} documents and "
                f"{self._tagged} tagged positions"
            )

    @property
    def texts(self) -> TokenizedTexts:
        return self._texts

    @cached_property
    def _texts(self) -> TokenizedTexts:
        ours, theirs = self.documents.texts, self.positions.texts
        return TokenizedTexts(ours.ids + theirs.ids, ours.tokens_cut + theirs.tokens_cut, ours.pad_id)

    @property
    def heads(self) -> tuple[str, ...]:
        return self.documents.head, self.positions.head

    def content(self) -> Iterator[bytes]:
        yield from self.documents.content()
        yield from self.positions.content()

    @cached_property
    def _tagged(self) -> int:
        """Tagged positions of all texts."""
        return self.positions.samples(range(len(self.positions.texts)))

    def samples(self, rows: Sequence[int]) -> float:
        """Documents and positions, the rarer ones counted so often that all of one weigh as much as all of the other.

        Example: 100 documents, 1500 positions -> a document counts 15 times
        """
        documents, tagged = self._apart(rows)
        count = len(self.documents.texts)
        weights = max(1.0, self._tagged / count), max(1.0, count / self._tagged)
        return weights[0] * len(documents) + weights[1] * self.positions.samples(tagged)

    def batches(self, size: int, generator: np.random.Generator, short_first: float) -> list[list[int]]:
        """Every row once; each batch has documents and tagged texts in the proportion of all."""
        steps = -(-len(self.texts) // size)
        ours, theirs = (
            task.batches(-(-len(task.texts) // steps), generator, short_first)
            for task in (self.documents, self.positions)
        )
        return [self._together(*parts) for parts in zip_longest(ours, theirs, fillvalue=[])]

    def alike(self, rows: Sequence[int]) -> list[list[int]]:
        documents, tagged = self._apart(rows)
        return [group for group in (documents, self._together([], tagged)) if group]

    def encode(self, model: LexicalSAE, rows: Sequence[int], *, live_only: bool = False) -> Encoded:
        documents, tagged = self._apart(rows)
        assert not (documents and tagged), "documents and positions are encoded apart: see `alike`"
        if documents:
            return self.documents.encode(model, documents, live_only=live_only)
        return self.positions.encode(model, tagged, live_only=live_only)

    def _apart(self, rows: Sequence[int]) -> tuple[list[int], list[int]]:
        """The rows as the documents count them, and as the tagged texts do."""
        first = len(self.documents.texts)
        return [row for row in rows if row < first], [row - first for row in rows if row >= first]

    def _together(self, documents: list[int], tagged: list[int]) -> list[int]:
        """The reverse of `_apart`."""
        first = len(self.documents.texts)
        return documents + [first + row for row in tagged]


def positions(
    tokenizer: PreTrainedTokenizerBase,
    split: TaggedSplit,
    tag_names: Sequence[str],
    max_length: int,
    shapes: ShapeFeatures | None = None,
) -> tuple[Positions, WordRows]:
    """The sentences with a tag at the first token of each word, in windows where they are long; and those rows."""
    rows = tokenize_words(tokenizer, split.tokens, max_length)
    ids = [encode_tags(tags, tag_names, f"sentence {number}") for number, tags in enumerate(split.tags)]
    described = None
    if shapes is not None:
        by_sentence = [shapes.describe(words) for words in split.tokens]
        described = functools.partial(rows.at_first_tokens, by_word=by_sentence.__getitem__)
    return Positions(rows.texts, rows.labels(ids), shapes=described), rows
