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

from lexical_sae.data.dimensions import Dimension
from lexical_sae.data.vocabulary import Spelling, Vocabulary
from lexical_sae.models.layers.cut_words import NO_WORD, CutWords, word_name
from lexical_sae.models.layers.word_boundaries import WordBoundaries
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.part import PartConfig


class LiteralWords(WordBoundaries):
    """Which dimension the word at each position is, and the encoder's state of that word."""

    more: CutWords | None
    """The trie of the words that were added."""
    same_word: Int[Tensor, " V"]
    """The dimension of each token where it is a whole word: its own, or that of the same word after a space."""
    token_of: Int[Tensor, " S"]
    """The dimension of each word in `split_here`."""

    class Config(PartConfig):
        multi_piece_words: tuple[str, ...] = ()
        """Words that the tokenizer splits into several tokens. Training collects those of its texts."""

        @field_validator("multi_piece_words")
        @classmethod
        def _once_each(cls, words: tuple[str, ...]) -> tuple[str, ...]:
            if twice := sorted(word for word, count in Counter(words).items() if count > 1):
                raise SettingsError(f"model.literal.multi_piece_words names a word twice: {', '.join(twice)}")
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
        other = vocabulary.other_spellings
        # On the CPU even while a model is outlined on the meta device: they describe the tokenizer.
        same_word = torch.arange(vocabulary.size, device="cpu")
        for way, token in other.items():
            if len(way) == 1:
                same_word[way[0]] = token
        split = {way: token for way, token in other.items() if len(way) > 1}
        names = [vocabulary.names[token] for token in split.values()]
        self.split_here = CutWords(names, vocabulary, [(way,) for way in split])
        """Words of one token after a space that are split where no space is before them."""
        token_of = torch.tensor([*split.values()], dtype=torch.long, device="cpu")
        self.register_buffer("same_word", same_word, persistent=False)
        self.register_buffer("token_of", token_of, persistent=False)

    def extended(self, words: Sequence[str]) -> "LiteralWords":
        """The same words and some more, for a view of a model; nothing is copied."""
        view = copy.copy(self)
        view.added = (*self.added, *words)
        view._modules = {**self._modules, "more": CutWords(view.added, self._vocabulary).to(self.goes_on.device)}
        return view

    def own_words(self, input_ids: Int[Tensor, "B L"]) -> Int[Tensor, "B L"]:
        found = super().own_words(input_ids)
        # What is a token here is a whole word: parts have no word, and multi-piece words other dimensions.
        is_token = (found >= 0) & (found < len(self.same_word))
        found = torch.where(is_token, self.same_word[found.clamp(0, len(self.same_word) - 1)], found)
        if not len(self.split_here):
            return found
        other = self.split_here.find(input_ids, self.goes_on_after(input_ids))
        is_split = (found == NO_WORD) & (other != NO_WORD)
        return torch.where(is_split, self.token_of[other.clamp(min=0)], found)

    def find(self, input_ids: Int[Tensor, "B L"], joined: Bool[Tensor, "B L-1"]) -> Int[Tensor, "B L"]:
        found = super().find(input_ids, joined)
        if self.more is None:
            return found
        other = self.more.find(input_ids, joined)
        return torch.where((found == NO_WORD) & (other != NO_WORD), len(self.cut) + other, found)

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

    def oov_words(self, token_ids: Sequence[int]) -> list[list[int]]:
        unknown = [word for word in super().oov_words(token_ids) if tuple(word) not in self.split_here.known]
        return unknown if self.more is None else [word for word in unknown if tuple(word) not in self.more.known]

    def new_words(self, texts: Iterable[Sequence[int]]) -> tuple[str, ...]:
        """The multi-piece words of tokenised texts that have no dimension yet, in alphabetical order."""
        return multi_piece_words((self.oov_words(ids) for ids in texts), self._vocabulary)


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
    rows, positions = (words != NO_WORD).nonzero(as_tuple=True)
    return rows, positions, words[rows, positions]
