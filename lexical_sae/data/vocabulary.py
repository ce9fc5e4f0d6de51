"""The words of a tokenizer: what each token is called, which tokens are words, and how it cuts the others up.

Nothing here knows a tokenizer by name. Whether a token begins a word is read off its behaviour: decoded after
another token, it either follows a space (`a good`) or continues the word (`aing`). That covers WordPiece (`##ing`),
byte-level BPE (`Ġgood`) and SentencePiece (`▁good`) alike.
"""

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from lexical_sae.data.encoding import encode
from lexical_sae.data.language import (
    APOSTROPHE,
    APOSTROPHE_TEE,
    SHORT_NOT,
    STEM,
    TEE,
    inflected,
    part_of_contraction,
    ways_to_write,
)
from lexical_sae.utils.errors import DataError

CONTINUATION = "##"
Spelling = tuple[int, ...]
"""The tokens of a word, in their order."""


@dataclass(frozen=True)
class WordMatch:
    """The dimensions that stand for a word, and how the tokenizer cuts it up."""

    word: str
    ids: tuple[int, ...]
    """Dimensions of the word itself, its case variants and its regular plural; empty when there is none."""
    pieces: tuple[str, ...]
    """Names of the tokens the word is cut into."""


class Vocabulary:
    """Names of the dimensions that come from a tokenizer, `size` of them (the decoder may have spare rows)."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, size: int | None = None) -> None:
        self.tokenizer = tokenizer
        self.size = len(tokenizer) if size is None else size
        if self.size < len(tokenizer):
            raise DataError(
                f"the tokenizer has {len(tokenizer)} tokens but the model only {self.size} words; "
                "they do not belong together"
            )

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """The tokenizer's own spelling of each token, spare rows included."""
        named = self.tokenizer.convert_ids_to_tokens(list(range(len(self.tokenizer))))
        spare = range(len(self.tokenizer), self.size)
        known = [token if token is not None else f"[missing{i}]" for i, token in enumerate(named)]
        return (*known, *(f"[unused{i}]" for i in spare))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Readable name of each dimension: `good` for a word, `##ing` for the continuation of one."""
        decoded, is_special = self._surfaces, (~self.feature_mask).tolist()
        readable = [
            token if special or not surface else (surface if begins else CONTINUATION + surface)
            for token, (surface, begins), special in zip(self.tokens, decoded, is_special, strict=True)
        ]
        # A name stands for one dimension: where two would share it, both keep the tokenizer's own spelling.
        uses = Counter(readable)
        return tuple(t if uses[name] > 1 else name for name, t in zip(readable, self.tokens, strict=True))

    @cached_property
    def feature_mask(self) -> Bool[Tensor, " V"]:
        """Dimensions that may be features: not special, added-as-special or unused tokens, not spare rows."""
        mask = torch.ones(self.size, dtype=torch.bool, device="cpu")
        mask[len(self.tokenizer) :] = False
        special = set(self.tokenizer.all_special_ids)
        special |= {i for i, added in self.tokenizer.added_tokens_decoder.items() if added.special}
        special |= {i for i, token in enumerate(self.tokens) if token.startswith(("[unused", "<unused", "[missing"))}
        mask[sorted(special)] = False
        return mask

    @cached_property
    def clean_mask(self) -> Bool[Tensor, " V"]:
        """Dimensions fit to be shown to a person: whole words of letters (digits may follow), nothing else."""
        readable = [
            begins and surface[:1].isalpha() and surface.replace("'", "").replace("-", "").isalnum()
            for surface, begins in self._surfaces
        ]
        return torch.tensor(readable, device="cpu") & self.feature_mask

    @cached_property
    def word_mask(self) -> Bool[Tensor, " V"]:
        """Tokens that are whole words when they stand alone: `clean_mask`, and numbers (`10`, `2nd`, `½`, `£5`)."""
        numbers = [begins and any(map(str.isalnum, surface)) for surface, begins in self._surfaces]
        return self.clean_mask | (torch.tensor(numbers, device="cpu") & self.feature_mask)

    @cached_property
    def joins_mask(self) -> tuple[Bool[Tensor, " V"], Bool[Tensor, " V"]]:
        """Tokens that go on with a word before them, and tokens that a word can go on after: `##ing`, `sing`.

        Punctuation does neither. Some tokenizers spell a word the same way in the middle of another and at the start
        of a text, so only both neighbours together show that a token is part of a word.
        """
        goes_on = [not begins and surface[:1].isalnum() for surface, begins in self._surfaces]
        is_open = [surface[-1:].isalnum() for surface, _ in self._surfaces]
        return torch.tensor(goes_on, device="cpu") & self.feature_mask, torch.tensor(is_open, device="cpu")

    @cached_property
    def contraction_parts(self) -> Int[Tensor, " V"]:
        """What a token can be in "isn't": NO_PART, STEM (`isn`), APOSTROPHE, TEE (`t`), or both of them (`'t`)."""
        return torch.tensor([part_of_contraction(surface) for surface, _ in self._surfaces], device="cpu")

    @cached_property
    def other_spellings(self) -> dict[Spelling, int]:
        """How words that are one token after a space are spelled where none is before them, with that token.

        Byte-level BPE and SentencePiece spell "good" in another way at the start of a text or after a bracket than in
        the middle of a sentence; WordPiece does not. Example: `(good,) -> Ġgood`, `(D, read, ful) -> ĠDreadful`
        """
        own = self.word_mask.tolist()
        words = [i for i, is_word in enumerate(own) if is_word]
        # Of most tokenizers a few words show that a space changes nothing.
        few = words[:: max(1, len(words) // 200)]
        if all(way == (i,) for i, way in zip(few, self._after_bracket(few), strict=True)):
            return {}
        found = zip(self._after_bracket(words), words, strict=True)
        return {way: i for way, i in found if self.is_cut(way) or (len(way) == 1 and not own[way[0]])}

    def _after_bracket(self, words: Sequence[int]) -> list[Spelling]:
        """The tokens of each word directly after a bracket; by themselves, some tokenizers put a space before them."""
        texts = encode(self.tokenizer, ["(" + self._surfaces[i][0] for i in words], add_special_tokens=False)
        pairs = (zip(text.ids, text.offsets, strict=True) for text in texts)
        return [tuple(token for token, (start, _) in pair if start > 0) for pair in pairs]

    def split_words(self, token_ids: Sequence[int], *, contractions: bool = True) -> list[list[int]]:
        """The words of a text that stand in several tokens; each as its tokens, in their order.

        Example: [CLS] a maw ##kish film [SEP] -> [[maw, ##kish]]; with `contractions` too: isn ' t -> [[isn, ', t]]
        """
        goes_on, can_go_on = self._joins
        joins = [can_go_on[before] and goes_on[token] for before, token in pairwise(token_ids)]
        if contractions:
            parts = [self._parts[token] for token in token_ids]
            # Few texts have one, and the slices below cost more than all else here.
            starts = range(len(parts) - 1) if {APOSTROPHE, APOSTROPHE_TEE}.intersection(parts) else ()
            for i in starts:
                is_short = parts[i : i + 2] == [STEM, APOSTROPHE_TEE]
                is_long = parts[i : i + 3] == [STEM, APOSTROPHE, TEE]
                last = i + 1 + is_long
                # "'n' twang": there the letter begins another word.
                if (is_short or is_long) and not any(joins[last : last + 1]):
                    joins[i:last] = [True] * (last - i)
        words: list[list[int]] = []
        if True not in joins:
            return words
        is_within = False
        for before, token, joined in zip(token_ids, token_ids[1:], joins, strict=False):
            if joined and is_within:
                words[-1].append(token)
            elif joined:
                words.append([before, token])
            is_within = joined
        return words

    def spellings(self, words: Sequence[str]) -> list[tuple[Spelling, ...]]:
        """The tokens of each text after a space and by itself: two ways with some tokenizers, the same with others.

        Those of "n't" are the tokens of all words that end in it, as far as they are parts of one word.
        """
        if not words:
            return []
        written = [ways_to_write(word) for word in words]
        texts = [text for ways in written for way in ways for text in (" " + way, way)]
        ids = iter([tuple(text.ids) for text in encode(self.tokenizer, texts, add_special_tokens=False)])
        found = [tuple(dict.fromkeys(next(ids) for _ in range(2 * len(ways)))) for ways in written]
        # Not all contractions are cut at the apostrophe by every tokenizer; those that are will do.
        return [
            tuple(filter(self.is_cut, ways)) or ways if word == SHORT_NOT else ways
            for word, ways in zip(words, found, strict=True)
        ]

    def split_forms(self, word: str) -> list[Spelling]:
        """The tokens of a word, its case variants and its regular plural, where those are parts of one word.

        Example: with a vocabulary that has "film" alone, `film -> [(film, ##s)]`
        """
        ways = self.spellings(sorted(inflected(word.strip())))
        return [spelling for forms in ways for spelling in forms if self.is_cut(spelling)]

    def is_cut(self, spelling: Spelling) -> bool:
        """Whether these tokens are the parts of one word."""
        return self.split_words(spelling) == [list(spelling)]

    @cached_property
    def _parts(self) -> list[int]:
        """`contraction_parts` as a list, for going through a text token by token."""
        return self.contraction_parts.tolist()

    @cached_property
    def _joins(self) -> tuple[list[bool], list[bool]]:
        """`joins_mask` as lists, for going through a text token by token."""
        goes_on, can_go_on = self.joins_mask
        return goes_on.tolist(), can_go_on.tolist()

    def find(self, word: str) -> WordMatch:
        """The dimensions of a word: with and without a leading space, in any case, singular and regular plural.

        Two-letter words have no plural here: "is" is not several of "i".

        Example: on a byte-level vocabulary `find("Muslim")` gives the ids of `Ġmuslim`, `ĠMuslim` and `ĠMuslims`.
        """
        word = word.strip()
        ids = {i for variant in inflected(word) for text in (variant, " " + variant) for i in self._single(text)}
        pieces = tuple(self.names[i] for i in self._encode(word))
        return WordMatch(word, tuple(sorted(ids)), pieces)

    def require(self, word: str) -> WordMatch:
        """`find`, or an error with the reason why the word has no dimension, and what to do."""
        if not word.strip():
            raise DataError("the word is empty; name a word of the vocabulary")
        match = self.find(word)
        if match.ids:
            return match
        ids = self._encode(word)
        if len(ids) == 1 and not self.feature_mask[ids[0]]:
            raise DataError(f"{word!r} is a special or unknown token, not a word of the vocabulary")
        near = difflib.get_close_matches(word.lower(), self._clean_names, n=3)
        hint = f"; similar words: {', '.join(near)}" if near else ""
        raise DataError(
            f"{word!r} has no dimension of its own: "
            f"the tokenizer cuts it into {' + '.join(match.pieces) or 'nothing'}{hint}"
        )

    @cached_property
    def _clean_names(self) -> tuple[str, ...]:
        return tuple(self.names[i] for i in self.clean_mask.nonzero().flatten().tolist())

    @cached_property
    def _surfaces(self) -> tuple[tuple[str, bool], ...]:
        """Text of each token and whether it begins a word; spare rows and broken byte sequences have no text."""
        backend: Any = self.tokenizer.backend_tokenizer
        anchor = self._anchor
        count = len(self.tokenizer)
        prefix = backend.decode([anchor], skip_special_tokens=False).strip()
        texts = backend.decode_batch([[anchor, i] for i in range(count)], skip_special_tokens=False)
        tails = [text.lstrip()[len(prefix) :] for text in texts]
        decoded = [("" if "\ufffd" in tail else tail.strip(), tail[:1].isspace()) for tail in tails]
        # Some decoders drop the space before punctuation; there, ask how the token is written after a space.
        unsure = [i for i, (text, begins) in enumerate(decoded) if text and not begins and not text[0].isalnum()]
        for i in unsure:
            decoded[i] = decoded[i][0], i in self._encode(f"{prefix} {decoded[i][0]}")
        return (*decoded, *[("", False)] * (self.size - count))

    @cached_property
    def _anchor(self) -> int:
        """A token of plain letters to decode others after."""
        special = set(self.tokenizer.all_special_ids)
        for text in ("a", "the", "i"):
            ids = [i for i in self._encode(text) if i not in special]
            if ids:
                return ids[-1]
        return next(i for i in range(len(self.tokenizer)) if i not in special)

    def _encode(self, text: str) -> list[int]:
        (encoded,) = encode(self.tokenizer, [text], add_special_tokens=False, reads_special_tokens=True)
        return encoded.ids

    def _single(self, text: str) -> list[int]:
        """The one dimension a text is, or nothing."""
        ids = self._encode(text)
        return ids if len(ids) == 1 and bool(self.feature_mask[ids[0]]) else []


def get_clean_vocab_mask(tokenizer: PreTrainedTokenizerBase, size: int | None = None) -> Bool[Tensor, " V"]:
    """Which vocabulary ids are whole words fit to show: no continuations, special, added-special or unused ids."""
    return Vocabulary(tokenizer, size).clean_mask
