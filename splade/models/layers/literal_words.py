"""Literal words: the features of a text are the words that are written in it.

Each written word has a dimension of its own: a token of the vocabulary, or an appended one for a word that the
tokenizer splits. Words that training never met get one when a text with them is read (`LexicalSAE.opened_to`).
"""

import copy
from collections import Counter
from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Bool, Float, Int
from pydantic import field_validator
from torch import Tensor

from splade.models.layers.cut_words import NOBODY, CutWords, word_name
from splade.models.layers.word_boundaries import WordBoundaries
from splade.part import PartConfig
from splade.vocab import Dimension, Spelling, Vocabulary


class LiteralWords(WordBoundaries):
    """Which dimension the word at each position is, and the encoder's state of that word."""

    more: CutWords | None
    """The trie of the words that were added."""

    class Config(PartConfig):
        multi_piece_words: tuple[str, ...] = ()
        """Words that the tokenizer splits into several tokens. Training collects those of its texts."""

        @field_validator("multi_piece_words")
        @classmethod
        def _once_each(cls, words: tuple[str, ...]) -> tuple[str, ...]:
            if twice := sorted(word for word, count in Counter(words).items() if count > 1):
                raise ValueError(f"model.literal.multi_piece_words names a word twice: {', '.join(twice)}")
            return words

        def dimensions(self) -> list[Dimension]:
            """The appended words."""
            return [Dimension(word, "word") for word in self.multi_piece_words]

        def build(self, vocabulary: Vocabulary) -> "LiteralWords":
            return LiteralWords(self, vocabulary)

    def __init__(self, config: Config, vocabulary: Vocabulary) -> None:
        super().__init__(config.multi_piece_words, vocabulary)
        self.config = config
        self.added: tuple[str, ...] = ()
        """Words that were added for some texts, after those of the settings."""
        # As a part, not as an attribute: that would hide the part of a view.
        self.register_module("more", None)

    def extended(self, words: Sequence[str]) -> "LiteralWords":
        """The same words and some more, for a view of a model; nothing is copied."""
        view = copy.copy(self)
        view.added = (*self.added, *words)
        view._modules = {**self._modules, "more": CutWords(view.added, self._vocabulary).to(self.goes_on.device)}
        return view

    def find(self, input_ids: Int[Tensor, "B L"], joined: Bool[Tensor, "B L-1"]) -> Int[Tensor, "B L"]:
        found = super().find(input_ids, joined)
        if self.more is None:
            return found
        other = self.more.find(input_ids, joined)
        return torch.where((found == NOBODY) & (other != NOBODY), len(self.cut) + other, found)

    def word_states(
        self, states: Float[Tensor, "B L E"], input_ids: Int[Tensor, "B L"], at: Bool[Tensor, "B L"]
    ) -> Float[Tensor, "N E"]:
        """The mean state over the tokens of each word, for the words that begin at the chosen positions."""
        begins = self.begins(input_ids)
        # Words are numbered through the batch, in reading order; a row always begins with a word.
        number = begins.flatten().cumsum(0) - 1
        count = int(number[-1]) + 1
        sums = states.new_zeros(count, states.shape[-1]).index_add_(0, number, states.flatten(0, 1))
        sizes = torch.bincount(number, minlength=count).to(states.dtype)
        chosen = number[at.flatten()]
        return sums[chosen] / sizes[chosen, None]

    def embeddings(self, rows: Float[Tensor, "V D"]) -> Float[Tensor, "W D"]:
        """A vector per word from the rows of an embedding: a token's own, or the mean over a word's tokens."""
        appended = [self.cut.embeddings(rows)] if len(self.cut) else []
        added = [] if self.more is None else [self.more.embeddings(rows)]
        return torch.cat([rows, *appended, *added])

    def added_embeddings(self, rows: Float[Tensor, "V D"]) -> Float[Tensor, "U D"]:
        """The same for the words that were added."""
        assert self.more is not None
        return self.more.embeddings(rows)

    def mute_words(self, token_ids: Sequence[int]) -> list[list[int]]:
        mute = super().mute_words(token_ids)
        return mute if self.more is None else [word for word in mute if tuple(word) not in self.more.known]

    def new_words(self, texts: Iterable[Sequence[int]]) -> tuple[str, ...]:
        """The multi-piece words of tokenised texts that have no dimension yet, in alphabetical order."""
        return multi_piece_words((self.mute_words(ids) for ids in texts), self._vocabulary)


def multi_piece_words(texts: Iterable[Sequence[Sequence[int]]], vocabulary: Vocabulary) -> tuple[str, ...]:
    """The names of the words that these texts split into several tokens, in alphabetical order.

    What the tokenizer would not split in the same way when it meets the name by itself is left out: it could not be
    found again. Words without a letter or digit are no words.
    """
    spelled: dict[Spelling, str] = {}
    for words in texts:
        for word in words:
            if tuple(word) not in spelled:
                spelled[tuple(word)] = word_name(str(vocabulary.tokenizer.decode(list(word))))
    names = sorted({name for name in spelled.values() if any(map(str.isalnum, name))})
    ways = zip(names, vocabulary.spellings(names), strict=True)
    return tuple(
        name for name, found in ways if all(map(vocabulary.is_cut, found)) and not spelled.keys().isdisjoint(found)
    )


def occurrences(words: Int[Tensor, "B L"]) -> tuple[Int[Tensor, " N"], Int[Tensor, " N"], Int[Tensor, " N"]]:
    """Text, position and dimension of every word that has one, text by text."""
    rows, positions = (words != NOBODY).nonzero(as_tuple=True)
    return rows, positions, words[rows, positions]
