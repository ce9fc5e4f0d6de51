"""Where the tokens and the words of a text stand, for any tokenizer that keeps character offsets.

1. The text alone decides what its words are (`word_spans`); a tokenizer's own idea of words differs from family to
   family.
2. Each token belongs to the word that its characters lie in. Words that one token covers are one word: what a model
   says at one position cannot be split.
3. A token of blank space belongs to the word after it if the tokenizer keeps the two together (`▁` before the letters
   of a rare word). Other blanks and special tokens belong to no word.

Places are counted in characters of the string as it was given.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, takewhile

import regex
from transformers import PreTrainedTokenizerBase

from lexical_sae.data.encoding import EncodedText, encode
from lexical_sae.data.tables.cell_values import repair_text
from lexical_sae.utils.errors import DataError

Span = tuple[int, int]
"""First character and the one after the last."""

_UNSPACED = r"[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}]"
# What `str.isspace` calls blank: the regex class lacks the four separators.
_BLANK = r"[\s\x1C-\x1F]"
# Marks follow the letter that they stand on; joiners hold letters together in Persian and Indic scripts.
_LETTERS = rf"(?:(?!{_UNSPACED})[\p{{L}}\p{{N}}_][\p{{M}}\u00AD\u200C\u200D]*)+"
_WORD = regex.compile(rf"{_LETTERS}(?:(?:['’]|(?<=\p{{Nd}})[.,](?=\p{{Nd}})){_LETTERS})*|(?!{_BLANK})\X")
# The same in ASCII, where a character is a code point and `re` is several times faster.
_ASCII_WORD = re.compile(r"[A-Za-z0-9_]+(?:(?:'|(?<=[0-9])[.,](?=[0-9]))[A-Za-z0-9_]+)*|[^ \t\n\r\f\v\x1C-\x1F]")
_CHARACTER = regex.compile("[\ud800-\udbff][\udc00-\udfff]|.", regex.DOTALL)


def word_spans(text: str) -> Iterator[Span]:
    """Where the words of a text stand, as a reader would count them.

    A word is a run of letters and digits with their combining marks; apostrophes join (`isn't`), and so do points and
    commas between digits (`3.14`). Everything else that is not blank stands alone: a punctuation mark, a hyphen, an
    emoji with all its parts, and a character of a script that writes no spaces (Chinese, Japanese, Thai).

    Example: `Isn't it 3.14?` gives `Isn't`, `it`, `3.14` and `?`.
    """
    if text.isascii():
        yield from (match.span() for match in _ASCII_WORD.finditer(text))
        return
    for match in _WORD.finditer(text):
        # A sign that is written before its digits, like U+0600, takes a space for one.
        yield match.start(), match.start() + len(match.group().rstrip())


@dataclass(frozen=True)
class TextLayout:
    """The tokens and the words of one text."""

    text: str
    token_ids: tuple[int, ...]
    token_spans: tuple[Span, ...]
    """Characters of each token without the blanks around them; empty for special tokens."""
    word_spans: tuple[Span, ...]
    """Words of which the model saw at least one token, in reading order."""
    token_words: tuple[int | None, ...]
    """Word that each token belongs to; None for special tokens and for blanks that belong to no word."""

    def __len__(self) -> int:
        return len(self.token_ids)

    def written(self, span: Span) -> str:
        """These characters as the tokenizer read them: never half a surrogate pair, so always fit to be printed."""
        return repair_text(self.text[slice(*span)])

    def joined(self, spans: Sequence[Span]) -> "TextLayout":
        """The same text, the words that each of these spans touches taken as one: names, phrases, sentences.

        Example: in `New York is big` the span (0, 8) gives the words `New York`, `is` and `big`.
        """
        for start, end in spans:
            if not 0 <= start < end <= len(self.text):
                raise DataError(f"span ({start}, {end}) is not inside the text of {len(self.text)} characters")
        groups = _glue(len(self.word_spans), _touched(self.word_spans, spans))
        token_words = tuple(None if word is None else groups[word] for word in self.token_words)
        return replace(self, word_spans=tuple(_group_spans(self.word_spans, groups)), token_words=token_words)


def lay_out(tokenizer: PreTrainedTokenizerBase, text: str, token_ids: Sequence[int]) -> TextLayout:
    """Where the given tokens of a text stand; with or without special tokens, cut to a length limit or whole.

    `token_ids` are those of `lexical_sae.data.batches.tokenize`; anything else than what the tokenizer makes of the
    text is refused, because then positions would point at the wrong words.

    Example: `unhappy film` cut into `un ##happy film` has the words (0, 7) and (8, 12), and token_words (0, 0, 1).
    """
    clean = repair_text(text)
    for add_special_tokens in (True, False):
        (encoded,) = encode(tokenizer, [clean], len(token_ids), add_special_tokens=add_special_tokens)
        if encoded.ids == list(token_ids):
            return layout_of(text, encoded)
    raise DataError(
        f"these {len(token_ids)} token ids are not what the tokenizer makes of {clean[:50]!r}; "
        "take them from lexical_sae.data.batches.tokenize, of the same text and without padding"
    )


def layout_of(text: str, encoded: EncodedText) -> TextLayout:
    """Where the tokens of a text stand, given its encoding: that of `repair_text(text)`."""
    clean, offsets = repair_text(text), encoded.offsets
    seen = max((end for _, end in offsets), default=0)
    units = list(takewhile(lambda unit: unit[0] < seen, word_spans(clean)))
    touched = _touched(units, offsets)
    groups = _glue(len(units), touched)
    # Units without a token (control characters, or what a cut on the left took) are no words of this layout.
    kept = {group: i for i, group in enumerate(sorted({groups[found[0]] for found in touched if found}))}
    in_letters = [kept[groups[found[0]]] if found else None for found in touched]
    words = [span for group, span in enumerate(_group_spans(units, groups)) if group in kept]
    spans = [_clipped(at, units, found) for at, found in zip(offsets, touched, strict=True)]
    place = _original_places(text, clean)
    return TextLayout(
        text,
        tuple(encoded.ids),
        tuple((place[start], place[end]) for start, end in spans),
        tuple((place[start], place[end]) for start, end in words),
        _with_blanks(in_letters, encoded.word_ids),
    )


def _touched(units: Sequence[Span], spans: Iterable[Span]) -> list[range]:
    """Which of the ordered units each span shares characters with; none for (0, 0), the span of special tokens."""
    starts, ends = [start for start, _ in units], [end for _, end in units]
    return [range(bisect_right(ends, start), bisect_left(starts, end)) for start, end in spans]


def _glue(units: int, touched: Iterable[range]) -> list[int]:
    """Group of each of so many units, counted from 0: units that one span touches are in one group.

    Example: units `New`, `York`, `is` and a span over the first two -> [0, 0, 1]
    """
    begins = [True] * units
    for together in touched:
        for unit in together[1:]:
            begins[unit] = False
    return [count - 1 for count in accumulate(begins)]


def _group_spans(units: Sequence[Span], groups: Sequence[int]) -> list[Span]:
    """From the first character to the last of each group."""
    spans: dict[int, Span] = {}
    for (start, end), group in zip(units, groups, strict=True):
        spans[group] = spans.get(group, (start, end))[0], end
    return list(spans.values())


def _clipped(span: Span, units: Sequence[Span], touched: range) -> Span:
    """The span without blanks at its ends; as it is where it is all blank."""
    return (max(span[0], units[touched[0]][0]), min(span[1], units[touched[-1]][1])) if touched else span


def _with_blanks(words: Sequence[int | None], tokenizer_words: Sequence[int | None]) -> tuple[int | None, ...]:
    """The word of each token; that of the next token for blanks that the tokenizer keeps together with it."""
    filled = list(words)
    for i in range(len(filled) - 2, -1, -1):
        if filled[i] is None and tokenizer_words[i] is not None and tokenizer_words[i] == tokenizer_words[i + 1]:
            filled[i] = filled[i + 1]
    return tuple(filled)


def _original_places(text: str, clean: str) -> Sequence[int]:
    """Where each character of the repaired text stood: repair makes one character of two halves that meet."""
    if len(clean) == len(text):
        return range(len(text) + 1)
    return [*(match.start() for match in _CHARACTER.finditer(text)), len(text)]
