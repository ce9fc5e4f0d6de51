"""Sentences given as words, to rows of tokens and back to one tag per word.

1. The words of a sentence are written one after another with spaces between, and tokenised like any text; a token
   belongs to the word that its last character lies in. No tokenizer needs to know about words.
2. A sentence that is too long becomes several rows that overlap by half. Each word is read in one of them, the one in
   which it has most words on both sides.
3. Decisions come back word by word, and a whole sentence is decoded at once: no entity ends where a row does.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from lexical_sae.data.batches import TokenizedTexts, pad_id
from lexical_sae.data.encoding import encode
from lexical_sae.data.tables.cell_values import repair_text
from lexical_sae.data.tagging import align_tags_to_subwords, decode_valid_tags, parse_tag
from lexical_sae.utils.errors import DataError

SPARE = 16
"""One token in this many is left free: cut off from its neighbours, a word may need more tokens."""

Place = tuple[int, int]
"""A sentence, and a word in it."""
WordIds = tuple[int | None, ...]
"""The word that each token belongs to; None for special tokens and for words that are read elsewhere."""


@dataclass(frozen=True)
class WordRows:
    """Rows of tokens, and which words are read in each."""

    texts: TokenizedTexts
    word_ids: tuple[WordIds, ...]
    """Per row, the words that are read in it."""
    standing: tuple[WordIds, ...]
    """Per row, all words that stand in it, those that are read in another row of their sentence too."""
    sentences: tuple[int, ...]
    """The sentence that each row is of."""
    lengths: tuple[int, ...]
    """Words of each sentence."""

    def first_tokens(self, row: int) -> list[tuple[int, int]]:
        """The position of each word's first token in a row, and the word.

        Example: word ids [None, 0, 0, 2, None] -> [(1, 0), (3, 2)]
        """
        return _first_tokens(self.word_ids[row])

    def at_first_tokens(
        self, rows: Sequence[int], by_word: Callable[[int], Bool[Tensor, "W S"]]
    ) -> Bool[Tensor, "B L S"]:
        """What is known of the words of some rows' sentences, at each word's first token; nothing elsewhere.

        `by_word` gives it for the words of a sentence. Rows are as wide as in `texts.batch(rows)`.
        """
        known = [by_word(self.sentences[row]) for row in rows]
        found = torch.zeros(len(rows), self.texts.width(rows), known[0].shape[1], dtype=torch.bool)
        for i, row in enumerate(rows):
            placed = _first_tokens(self.standing[row])
            found[i, [position for position, _ in placed]] = known[i][[word for _, word in placed]]
        return found

    def unread(self) -> list[Place]:
        """Words that tokenise to nothing, so that nothing can be decided about them."""
        read = {(self.sentences[row], word) for row in range(len(self.texts)) for _, word in self.first_tokens(row)}
        return [(s, w) for s, length in enumerate(self.lengths) for w in range(length) if (s, w) not in read]

    def labels(self, tag_ids: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
        """One label per token of each row, from one tag per word of each sentence."""
        if lost := [s for s, length in enumerate(self.lengths) if len(tag_ids[s]) != length]:
            length, tags = self.lengths[lost[0]], len(tag_ids[lost[0]])
            raise DataError(f"sentence {lost[0]} has {length} words and {tags} tags; give one tag per word")
        aligned = (
            align_tags_to_subwords(ids, tag_ids[s]) for ids, s in zip(self.word_ids, self.sentences, strict=True)
        )
        return [row.label_ids for row in aligned]

    def decode(
        self, found: Iterable[tuple[Sequence[Place], Float[Tensor, "_ C"]]], tag_names: Sequence[str]
    ) -> list[tuple[str, ...]]:
        """The best valid tags of each whole sentence, from the logits of its words in any order."""
        logits: defaultdict[int, dict[int, Tensor]] = defaultdict(dict)
        for places, some in found:
            for (sentence, word), row in zip(places, some.detach().cpu(), strict=True):
                logits[sentence][word] = row
        return [self._decode(logits[s], length, tag_names) for s, length in enumerate(self.lengths)]

    @staticmethod
    def _decode(logits: dict[int, Tensor], length: int, tag_names: Sequence[str]) -> tuple[str, ...]:
        read = sorted(logits)
        if not read:
            return ("O",) * length
        decided = decode_valid_tags(torch.stack([logits[word] for word in read]), tag_names)
        tags = {word: tag_names[i] for word, i in zip(read, decided, strict=True)}
        whole: list[str] = []
        for word in reversed(range(length)):
            following = whole[-1] if whole else "O"
            # A word that was not read is in an entity if the entity goes on after it.
            whole.append(tags.get(word, following if parse_tag(following)[0] == "I" else "O"))
        return tuple(reversed(whole))


def _first_tokens(word_ids: WordIds) -> list[tuple[int, int]]:
    found: dict[int, int] = {}
    for position, word in enumerate(word_ids):
        if word is not None:
            found.setdefault(word, position)
    return [(position, word) for word, position in found.items()]


def tokenize_words(tokenizer: PreTrainedTokenizerBase, sentences: Sequence[Any], max_length: int) -> WordRows:
    """Rows of at most `max_length` tokens in which every word of every sentence is read once.

    A sentence is a list of words; a string, or a word that is none, is refused with its place.
    """
    clean = [_checked(words, number) for number, words in enumerate(sentences)]
    ids: list[list[int]] = []
    word_ids: list[WordIds] = []
    standing: list[WordIds] = []
    owners: list[int] = []
    for number, (tokens, words_of) in enumerate(_tokenized(tokenizer, clean)):
        if len(tokens) <= max_length:
            rows: Iterable[tuple[list[int], WordIds, WordIds]] = [(tokens, words_of, words_of)]
        else:
            rows = _windows(tokenizer, clean[number], words_of, max_length)
        for row_ids, read, all_words in rows:
            ids.append(row_ids)
            word_ids.append(read)
            standing.append(all_words)
            owners.append(number)
    texts = TokenizedTexts(tuple(ids), (0,) * len(ids), pad_id(tokenizer))
    return WordRows(texts, tuple(word_ids), tuple(standing), tuple(owners), tuple(map(len, clean)))


def _checked(words: Any, number: int) -> list[str]:
    if isinstance(words, str):
        raise DataError(f"sentence {number} is a string; split it into words, e.g. {words.split()[:4]!r}")
    for place, word in enumerate(words):
        if not isinstance(word, str):
            raise DataError(f"sentence {number}, word {place} is {type(word).__name__} {word!r}, not a string")
    return [repair_text(word) for word in words]


def _tokenized(
    tokenizer: PreTrainedTokenizerBase, sentences: Sequence[Sequence[str]], max_length: int | None = None
) -> Iterator[tuple[list[int], WordIds]]:
    """Token ids of each sentence with special tokens, and the word of each token."""
    encoded = encode(tokenizer, [" ".join(words) for words in sentences], max_length)
    for words, text in zip(sentences, encoded, strict=True):
        # Each word stands one space after the one before it.
        ends = list(accumulate(map(len, words), lambda end, size: end + 1 + size))
        starts = [end - len(word) for end, word in zip(ends, words, strict=True)]
        yield (
            text.ids,
            tuple(_word_at(last - 1, starts, ends) if first < last else None for first, last in text.offsets),
        )


def _word_at(character: int, starts: Sequence[int], ends: Sequence[int]) -> int | None:
    word = bisect_right(starts, character) - 1
    return word if word >= 0 and character < ends[word] else None


def _windows(
    tokenizer: PreTrainedTokenizerBase, words: Sequence[str], words_of: WordIds, max_length: int
) -> list[tuple[list[int], WordIds, WordIds]]:
    """The rows of a sentence that is too long: tokens, the words that are read there, and all that stand there."""
    sizes = [0] * len(words)
    for word in words_of:
        if word is not None:
            sizes[word] += 1
    room = max_length - tokenizer.num_special_tokens_to_add()
    spans = list(cut(sizes, max(1, room - room // SPARE)))
    rows = list(_tokenized(tokenizer, [words[first:last] for first, last in spans], max_length))
    placed = [
        (ids, tuple(None if word is None else word + first for word in local))
        for (ids, local), (first, _) in zip(rows, spans, strict=True)
    ]
    best: dict[int, tuple[float, int]] = {}
    for row, (_, inside) in enumerate(placed):
        for word in set(inside) - {None}:
            assert word is not None
            context = _context(word, spans[row], len(words))
            if context > best.get(word, (-1.0, 0))[0]:
                best[word] = context, row
    return [
        (ids, tuple(word if word is not None and best[word][1] == row else None for word in inside), inside)
        for row, (ids, inside) in enumerate(placed)
    ]


def _context(word: int, span: tuple[int, int], length: int) -> float:
    """Words on the shorter side; a side that ends with the sentence lacks nothing."""
    first, last = span
    return min(word - first if first else length, last - 1 - word if last < length else length)


def cut(sizes: Sequence[int], room: int) -> Iterator[tuple[int, int]]:
    """First word of each window and the one after its last; neighbours share half their room.

    `sizes` are tokens per word. A word that alone is too large has a window for itself, and loses its end.

    Example: `cut([1] * 6, 4)` -> (0, 4), (2, 6)
    """
    before = [0, *accumulate(sizes)]

    def end(first: int) -> int:
        return max(first + 1, bisect_right(before, before[first] + room) - 1)

    first = 0
    while True:
        last = end(first)
        yield first, last
        if last >= len(sizes):
            return
        first = min(max(first + 1, bisect_left(before, before[last] - room // 2)), last)
        # The next window must reach further than this one, though a long word may stand in the way.
        while end(first) <= last:
            first += 1
