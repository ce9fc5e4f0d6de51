"""Shape features: how a word is written, as named dimensions beside the words.

An uncased encoder never sees that "Apple" has a capital. So a tagger gets orthographic features as dimensions of its
own, each one or zero and each with a name that a person can check: "is capitalised", "all caps", "has digit". They are
computed from the letters alone and pass beside the gate's thresholds (there is nothing to learn about whether a word
has a digit). They meet the words in the head, which attributes to all of them alike. A closed shape feature is zero for
every input.
"""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from lexical_sae.data.dimensions import Dimension
from lexical_sae.models.sparse_code import SparseCode
from lexical_sae.utils.part import PartConfig

HEADLINE = 2 / 3
"""Share of a sentence's words of two letters and more that are in capitals if it is a headline."""


def is_all_caps(word: str) -> bool:
    """Two letters or more, all of them capitals. Example: `U.S.`, `EU`, not `A`"""
    return word.isupper() and _letters(word) > 1


def has_capital(word: str) -> bool:
    """Whether it begins with a capital, whatever follows."""
    return word[:1].isupper()


def is_headline(words: Sequence[str]) -> bool:
    """Whether nearly all of a sentence is in capitals, so that capitals are uninformative."""
    long = [word for word in words if _letters(word) > 1]
    return bool(long) and sum(map(is_all_caps, long)) >= HEADLINE * len(long)


def _letters(word: str) -> int:
    return sum(map(str.isalpha, word))


def _is_mixed(word: str) -> bool:
    return any(map(str.isupper, word[1:])) and any(map(str.islower, word))


def _is_number(word: str) -> bool:
    return any(map(str.isdigit, word)) and all(c.isdigit() or c in "+-.,:/%" for c in word)


OF_A_WORD: dict[str, Callable[[str], bool]] = {
    "is capitalised": lambda word: has_capital(word) and not is_all_caps(word),
    "all caps": is_all_caps,
    "mixed case": _is_mixed,
    "has digit": lambda word: any(map(str.isdigit, word)),
    "is a number": _is_number,
    "has hyphen": lambda word: "-" in word[1:-1],
    "has full stop": lambda word: "." in word and _letters(word) > 0,
}
"""What a word shows by itself. Names of two words and more: none is the name of a word of the vocabulary."""

OF_ITS_PLACE: dict[str, Callable[[Sequence[str]], list[bool]]] = {
    "opens the sentence": lambda words: [at == 0 for at in range(len(words))],
    "after a capital": lambda words: [False, *map(has_capital, words)][: len(words)],
    "before a capital": lambda words: [*map(has_capital, words[1:]), False][: len(words)],
    "in a headline": lambda words: [is_headline(words)] * len(words),
}
"""What the words beside it show, word by word: a capital is less informative at the start of a sentence."""


class ShapeFeatures:
    """The last columns of a sparse layer: one where a word has the shape, zero where it has not."""

    class Config(PartConfig):
        context: bool = True
        """Whether the words beside a word, and its sentence, are described too: "after a capital", "in a headline"."""
        in_encoder: bool = False
        """Whether the encoder gets them too: a learned vector per feature is added to the word's input embedding."""

        @property
        def names(self) -> tuple[str, ...]:
            """What the dimensions are called, in their order."""
            return (*OF_A_WORD, *(OF_ITS_PLACE if self.context else ()))

        def dimensions(self) -> list[Dimension]:
            """The dimensions to append."""
            return [Dimension(name, "shape") for name in self.names]

        def build(self, first: int) -> "ShapeFeatures":
            return ShapeFeatures(self, first)

    def __init__(self, config: Config, first: int) -> None:
        """`first` is the dimension of the first shape; all dimensions from there on are shapes."""
        self.config, self.first = config, first

    def __len__(self) -> int:
        return len(self.config.names)

    def describe(self, words: Sequence[str]) -> Bool[Tensor, "W S"]:
        """Which shapes each word of a sentence has.

        Example: in `["Mr", "Li"]` the first "is capitalised", "opens the sentence" and stands "before a capital".
        """
        columns = [[has(word) for word in words] for has in OF_A_WORD.values()]
        if self.config.context:
            columns += [has(words) for has in OF_ITS_PLACE.values()]
        return torch.tensor(columns, dtype=torch.bool).reshape(len(self), len(words)).T

    def add_columns(self, logits: Float[Tensor, "*batch W"]) -> Float[Tensor, "*batch V"]:
        """Word logits with a column for each shape, -inf: no gate opens what is not a matter of degree."""
        return pad(logits, (0, len(self)), value=-torch.inf)

    def fill(
        self, sparse: Float[Tensor, "*batch K"], present: Bool[Tensor, "*batch S"], closed: Bool[Tensor, " V"]
    ) -> Float[Tensor, "*batch K"]:
        """Sparse vectors, of all words or of some, with their shapes, but for closed ones."""
        shown = (present & ~closed[self.first :]).to(sparse.dtype)
        return torch.cat([sparse[..., : -len(self)], shown], dim=-1)

    def join(
        self,
        code: SparseCode,
        present: Bool[Tensor, "N S"],
        closed: Bool[Tensor, " V"],
        positions: Int[Tensor, " N"],
    ) -> SparseCode:
        """The same for a code of words: shapes follow the words of each row, at the row's position."""
        rows, shapes = (present & ~closed[self.first :]).nonzero(as_tuple=True)
        ones = code.values.new_ones(len(rows))
        return _merged(code, (rows, shapes + self.first, ones, positions[rows]))

    def keep_strongest_words(self, code: SparseCode, k: int) -> SparseCode:
        """The k strongest words of each row; a shape is not a word and stays."""
        is_word = code.ids < self.first
        shapes = _entries(code, ~is_word)
        shape = (len(code), code.size)
        return _merged(SparseCode.from_entries(*_entries(code, is_word), shape).keep_strongest(k), shapes)


Entries = tuple[Tensor, Tensor, Tensor, Tensor]
"""Rows, ids, values and positions."""


def _entries(code: SparseCode, kept: Bool[Tensor, " K"]) -> Entries:
    return code.rows[kept], code.ids[kept], code.values[kept], code.positions[kept]


def _merged(code: SparseCode, others: Entries) -> SparseCode:
    """A code with further entries, row by row and by id."""
    own = _entries(code, torch.ones_like(code.ids, dtype=torch.bool))
    rows, ids, values, positions = (torch.cat(pair) for pair in zip(own, others, strict=True))
    order = torch.argsort(rows * code.size + ids)
    return SparseCode.from_entries(rows[order], ids[order], values[order], positions[order], (len(code), code.size))
