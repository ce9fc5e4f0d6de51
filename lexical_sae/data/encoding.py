"""Texts to tokens, whatever else the tokenizer is used for at the same time.

transformers keeps truncation, padding and the reading of typed special tokens as settings of the one object behind a
fast tokenizer, and changes them with every call: of two threads, one is answered with the other's settings. So nothing
here calls a tokenizer.

1. Each call puts a private tokenizer together from the parts of the given one. Parts are shared, not copied: it takes
   microseconds, and a tokenizer that is edited is read as it is now.
2. It has neither truncation nor padding: every text is encoded whole, and cut afterwards (`EncodedText`).
"""

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any, TypeVar

from tokenizers import Encoding, Tokenizer
from transformers import PreTrainedTokenizerBase

from lexical_sae.utils.errors import DataError

Entry = TypeVar("Entry")


class EncodedText:
    """The tokens of a text, special tokens included, as far as they fit.

    Ids, offsets and words are those of one encoding, so they always belong together.
    """

    def __init__(self, encoding: Encoding, max_length: int | None = None, truncation_side: str = "right") -> None:
        """At most `max_length` tokens; the text loses its end, or its beginning, and never a special token."""
        self._encoding = encoding
        self.tokens_cut = 0
        """How many tokens of the text did not fit."""
        self._gap = (0, 0)
        if max_length is not None and len(encoding) > max_length:
            is_special = encoding.special_tokens_mask
            first, last = _leading(is_special), len(encoding) - _leading(reversed(is_special))
            self.tokens_cut = cut = min(len(encoding) - max_length, max(0, last - first))
            self._gap = (first, first + cut) if truncation_side == "left" else (last - cut, last)

    def __len__(self) -> int:
        return len(self._encoding) - self.tokens_cut

    @property
    def ids(self) -> list[int]:
        """The id of each token."""
        return self._kept(self._encoding.ids)

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """First character of each token and the one after its last; (0, 0) for special tokens."""
        return self._kept(self._encoding.offsets)

    @property
    def word_ids(self) -> list[int | None]:
        """What each token is a part of, by the tokenizer's own idea of words; None for special tokens."""
        return self._kept(self._encoding.word_ids)

    @property
    def is_special(self) -> list[bool]:
        """Which tokens the tokenizer put around the text; none that is typed in it."""
        return [bool(flag) for flag in self._kept(self._encoding.special_tokens_mask)]

    def _kept(self, entries: list[Entry]) -> list[Entry]:
        first, last = self._gap
        return entries if first == last else entries[:first] + entries[last:]


def encode(
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    max_length: int | None = None,
    *,
    add_special_tokens: bool = True,
    reads_special_tokens: bool = False,
) -> list[EncodedText]:
    """The tokens of each text, as the tokenizer's own call gives them with these settings when no other thread uses it.

    Special tokens typed in a text (`[SEP]`) are text like any other, unless `reads_special_tokens`. The tokenizer's
    `truncation_side` is the end at which a text that is too long is cut.
    """
    own = _private(tokenizer, reads_special_tokens=reads_special_tokens)
    whole = own.encode_batch(list(texts), add_special_tokens=add_special_tokens)
    return [EncodedText(encoding, max_length, tokenizer.truncation_side) for encoding in whole]


def special_tokens_around(tokenizer: PreTrainedTokenizerBase) -> tuple[int, int]:
    """How many special tokens the tokenizer puts before a text, and how many after it."""
    (encoded,) = encode(tokenizer, ["a"])
    return _leading(encoded.is_special), _leading(reversed(encoded.is_special))


def _leading(flags: Iterable[int]) -> int:
    return sum(takewhile(bool, flags))


def _private(tokenizer: PreTrainedTokenizerBase, *, reads_special_tokens: bool) -> Tokenizer:
    """A tokenizer with the same parts and settings of its own."""
    if not tokenizer.is_fast:
        raise DataError(f"{type(tokenizer).__name__} keeps no character offsets; load the fast tokenizer instead")
    shared: Any = tokenizer.backend_tokenizer
    own = Tokenizer(shared.model)
    own.normalizer, own.pre_tokenizer = shared.normalizer, shared.pre_tokenizer
    own.post_processor = shared.post_processor
    # In the order of their ids, which are given out again as they were.
    own.add_tokens([token for _, token in sorted(shared.get_added_tokens_decoder().items())])
    own.encode_special_tokens = not reads_special_tokens
    return own
