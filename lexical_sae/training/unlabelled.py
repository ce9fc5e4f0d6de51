"""Texts without a label, which say what words mean; and what the pretrained encoder says of the words of any texts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lexical_sae.data.batches import TokenizedTexts, tokenize
from lexical_sae.models.lexical_sae import LexicalSAE


@dataclass(frozen=True)
class WordsInTexts:
    """The words of some texts, and the states that the pretrained encoder gives them. No label enters."""

    sums: Float[Tensor, "V E"]
    """Of the states of each word."""
    counts: Int[Tensor, " V"]
    activations: scipy.sparse.csr_matrix
    """Of the words of each text, without context: [T, V]."""
    means: Float[Tensor, "T E"]
    """The mean state of each text."""
    tokens: Int[Tensor, " T"]
    """How many tokens each text has."""

    def __add__(self, other: "WordsInTexts") -> "WordsInTexts":
        activations = scipy.sparse.csr_matrix(scipy.sparse.vstack([self.activations, other.activations]))
        means, tokens = torch.cat([self.means, other.means]), torch.cat([self.tokens, other.tokens])
        return WordsInTexts(self.sums + other.sums, self.counts + other.counts, activations, means, tokens)

    def at(self, places: Int[Tensor, " V"], size: int) -> "WordsInTexts":
        """The same, each word at another place among so many dimensions."""
        sums = self.sums.new_zeros(size, self.sums.shape[1]).index_copy_(0, places, self.sums)
        counts = self.counts.new_zeros(size).index_copy_(0, places, self.counts)
        by_text = self.activations
        columns = places.numpy()[by_text.indices]
        moved = scipy.sparse.csr_matrix((by_text.data, columns, by_text.indptr), shape=(len(self.tokens), size))
        return WordsInTexts(sums, counts, moved, self.means, self.tokens)


ReadTexts = Callable[[TokenizedTexts], WordsInTexts]


class UnlabelledTexts:
    """Texts that word vectors are taken from, and nothing is learned from; read once for all tables of a run."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = tuple(texts)
        self._found: WordsInTexts | None = None
        self._appended: tuple[str, ...] = ()
        """The appended words of the model that they were read with."""

    def words(self, model: LexicalSAE, read: ReadTexts) -> WordsInTexts:
        """Their words, at the dimensions of a model that has a dimension for each, and the same pretrained encoder."""
        assert model.literal is not None
        appended = model.literal.config.multi_piece_words
        if self._found is None:
            self._found = read(tokenize(model.tokenizer, self.texts, model.max_length))
            self._appended = appended
        if appended == self._appended:
            return self._found
        size = len(model.dimensions)
        place_of = dict(zip(appended, range(size - len(appended), size), strict=True))
        first = np.arange(size - len(appended))
        places = np.concatenate([first, np.array([place_of[word] for word in self._appended], dtype=np.int64)])
        return self._found.at(torch.from_numpy(places), size)
