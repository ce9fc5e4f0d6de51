"""What each dimension of the sparse layer is called: the words of the vocabulary, and what parts append to them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from jaxtyping import Bool
from torch import Tensor

from lexical_sae.data.language import inflected
from lexical_sae.data.vocabulary import CONTINUATION, Spelling, Vocabulary

Kind = Literal["word", "sense", "shape", "piece"]
"""What a dimension is; a piece is a token that is no word (`##ing`, `.`, `2004`); lists leave it out by default."""


@dataclass(frozen=True)
class Dimension:
    """What one dimension of the sparse layer is called, and what kind of thing it is."""

    name: str
    kind: Kind

    @property
    def letters(self) -> str:
        """How it is written in a text: no mark of continuation, no number of a sense, in any case."""
        is_slot = self.kind == "sense" or (self.kind == "piece" and "@sense" in self.name)
        word = self.name.rpartition("@")[0] if is_slot else self.name
        return word.removeprefix(CONTINUATION).casefold()


class DimensionTable:
    """The one place that maps a dimension to its name and kind: vocabulary first, then what parts append.

    Of what is appended, whole words (those that the tokenizer cuts up) come first: words, then senses and shapes.
    With `numbers`, a number of the vocabulary is a word like any other.
    """

    def __init__(self, vocabulary: Vocabulary, appended: Sequence[Dimension] = (), *, numbers: bool = False) -> None:
        self.vocabulary = vocabulary
        self.appended = tuple(appended)
        self.numbers = numbers
        self._tokens: dict[int, Dimension] = {}
        """Dimensions of the vocabulary that were asked for: every explanation asks for all of its words."""

    def with_appended(self, appended: Sequence[Dimension]) -> "DimensionTable":
        """The same vocabulary with these dimensions after it."""
        table = DimensionTable(self.vocabulary, appended, numbers=self.numbers)
        table._tokens = self._tokens
        return table

    def __len__(self) -> int:
        return self.vocabulary.size + len(self.appended)

    def __getitem__(self, index: int) -> Dimension:
        if known := self._tokens.get(index):
            return known
        if not 0 <= index < len(self):
            raise IndexError(f"dimension {index} does not exist; the sparse layer has {len(self)}")
        if index >= self.vocabulary.size:
            return self.appended[index - self.vocabulary.size]
        kind: Kind = "word" if self._word_tokens[index] else "piece"
        return self._tokens.setdefault(index, Dimension(self.vocabulary.names[index], kind))

    @property
    def num_words(self) -> int:
        """Dimensions that are words, of the vocabulary or appended; senses and shapes come after them."""
        return self.vocabulary.size + sum(dimension.kind == "word" for dimension in self.appended)

    def find(self, word: str) -> tuple[int, ...]:
        """Every dimension of a word, its sense slots included; refused with the reason when there is none."""
        spelled = self.vocabulary.spellings(sorted(inflected(word.strip()))) if self.spelled else []
        appended = {self.spelled[spelling] for ways in spelled for spelling in ways if spelling in self.spelled}
        ids = self.vocabulary.find(word).ids if appended else self.vocabulary.require(word).ids
        senses = tuple(f"{self[i].name}@" for i in ids)
        slots = [i for i, slot in enumerate(self.appended, self.vocabulary.size) if slot.name.startswith(senses)]
        return (*ids, *sorted(appended), *slots)

    @cached_property
    def spelled(self) -> dict[Spelling, int]:
        """The dimension of each appended word, by the tokens that it may stand in."""
        words = [dimension.name for dimension in self.appended if dimension.kind == "word"]
        found = enumerate(self.vocabulary.spellings(words), self.vocabulary.size)
        return {spelling: i for i, ways in found for spelling in ways if self.vocabulary.is_cut(spelling)}

    def names(self, indices: Iterable[int]) -> list[str]:
        """Names of several dimensions, in their order."""
        return [self[int(index)].name for index in indices]

    @property
    def feature_mask(self) -> Bool[Tensor, " V"]:
        """Dimensions that may ever be active."""
        # The masks describe the tokenizer: they stay on the CPU even while a model is outlined on the meta device.
        appended = torch.ones(len(self.appended), dtype=torch.bool, device="cpu")
        return torch.cat([self.vocabulary.feature_mask, appended])

    @property
    def clean_mask(self) -> Bool[Tensor, " V"]:
        """Dimensions fit to be shown to a person: whole words, their senses, and shape features."""
        appended = [dimension.kind != "piece" for dimension in self.appended]
        return torch.cat([self._word_tokens, torch.tensor(appended, dtype=torch.bool, device="cpu")])

    @property
    def _word_tokens(self) -> Bool[Tensor, " T"]:
        """Tokens of the vocabulary that are words."""
        return self.vocabulary.word_mask if self.numbers else self.vocabulary.clean_mask

    def listed_mask(self, *, all_tokens: bool = False) -> Bool[Tensor, " V"]:
        """Dimensions that a list of words may name: `clean_mask`, or with `all_tokens` every one."""
        return torch.ones(len(self), dtype=torch.bool, device="cpu") if all_tokens else self.clean_mask
