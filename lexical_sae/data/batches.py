"""Texts to padded batches: tokenize once, put texts of similar length together, pad to the longest of each batch.

`batches` is the loop of everything that reads many texts; training shuffles its own (`shuffled_buckets`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from lexical_sae.data.encoding import EncodedText, encode
from lexical_sae.data.tables.cell_values import repair_text
from lexical_sae.utils.errors import DataError
from lexical_sae.utils.progress import OnStep, Step, silent

LONG_TEXT = 1024
"""Tokens per text, on the mean, that a batch holds at most."""


@dataclass(frozen=True)
class Batch:
    """Padded token ids of some texts, and which texts they are."""

    input_ids: Int[Tensor, "B L"]
    attention_mask: Bool[Tensor, "B L"]
    rows: Int[Tensor, " B"]
    """Index of each text in the list it came from."""

    def to(self, device: torch.device | str) -> "Batch":
        """The batch with its tokens on a device; the rows stay where they are."""
        return Batch(self.input_ids.to(device), self.attention_mask.to(device), self.rows)


@dataclass(frozen=True)
class TokenizedTexts:
    """Token ids per text, not padded, and how many tokens each text lost to the length limit."""

    ids: tuple[list[int], ...]
    tokens_cut: tuple[int, ...]
    pad_id: int

    @classmethod
    def of(cls, encoded: Sequence[EncodedText], pad_id: int) -> "TokenizedTexts":
        """Texts that are encoded already."""
        return cls(tuple(text.ids for text in encoded), tuple(text.tokens_cut for text in encoded), pad_id)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def num_cut(self) -> int:
        """Number of texts that were longer than the limit."""
        return sum(cut > 0 for cut in self.tokens_cut)

    def width(self, rows: Sequence[int]) -> int:
        """Tokens of the longest of the given texts, at least one."""
        return max(1, *(len(self.ids[row]) for row in rows))

    def batch(self, rows: Sequence[int]) -> Batch:
        """The given texts, padded on the right to the longest of them."""
        lengths = [len(self.ids[row]) for row in rows]
        width = self.width(rows)
        input_ids = torch.full((len(rows), width), self.pad_id)
        for i, row in enumerate(rows):
            input_ids[i, : lengths[i]] = torch.tensor(self.ids[row])
        mask = torch.arange(width)[None] < torch.tensor(lengths)[:, None]
        return Batch(input_ids, mask, torch.tensor(rows))


def tokenize(tokenizer: PreTrainedTokenizerBase, texts: Sequence[Any], max_length: int) -> TokenizedTexts:
    """Token ids of each text with special tokens, cut to `max_length`; what was cut is counted, not hidden.

    Anything but a string is refused with its row. Special tokens typed as text (`[CLS]`, `<s>`) stay text: a user's
    string never becomes a control token.
    """
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise DataError(f"text {row} is {type(text).__name__} {text!r}, not a string")
    # A lone surrogate is no character; the tokenizer would fail on it from inside.
    clean = [repair_text(text) for text in texts]
    return TokenizedTexts.of(encode(tokenizer, clean, max_length), pad_id(tokenizer))


def length_buckets(texts: TokenizedTexts, batch_size: int) -> Iterator[list[int]]:
    """Rows in batches of similar length, longest first: a batch that does not fit in memory fails at once.

    Texts of more than `LONG_TEXT` tokens come in smaller batches, of as many tokens as so many texts of that length.
    """
    order = sorted(range(len(texts)), key=lambda row: (-len(texts.ids[row]), row))
    while order:
        count = rows_at_once(len(texts.ids[order[0]]), batch_size)
        yield order[:count]
        order = order[count:]


def rows_at_once(longest: int, batch_size: int) -> int:
    """How many texts make a batch of which the longest has so many tokens."""
    return batch_size if longest <= LONG_TEXT else max(1, batch_size * LONG_TEXT // longest)


def batches(
    texts: TokenizedTexts,
    batch_size: int,
    task: str = "reading texts",
    on_step: OnStep = silent,
    device: torch.device | str | None = None,
) -> Iterator[Batch]:
    """Every text once, in padded batches of similar length, longest first.

    Args:
        texts: Tokenized texts.
        batch_size: Most texts of a batch.
        task: Name of the task for the progress display.
        on_step: Receives progress once the work on a batch is done.
        device: Where the batches go; by default they stay on the CPU.

    Example: `for batch in batches(tokenize(tokenizer, texts, 256), 32): state = read_batch(model, batch)`
    """
    done = 0
    for rows in length_buckets(texts, batch_size):
        batch = texts.batch(rows)
        yield batch if device is None else batch.to(device)
        done += len(rows)
        on_step(Step(task, done, len(texts)))


def shuffled_buckets(
    texts: TokenizedTexts, batch_size: int, generator: np.random.Generator, short_first: float = 0.0
) -> list[list[int]]:
    """Rows in random batches of similar length: shuffled, sorted within pools of 50 batches, batches shuffled.

    The larger `short_first`, the more of the short batches come before the long ones; with 1 all do.
    """
    order = generator.permutation(len(texts)).tolist()
    pool = batch_size * 50
    pools = [order[start : start + pool] for start in range(0, len(order), pool)]
    ordered = [row for rows in pools for row in sorted(rows, key=lambda row: len(texts.ids[row]))]
    batches = [ordered[start : start + batch_size] for start in range(0, len(ordered), batch_size)]
    return shuffled_batches(texts, batches, generator, short_first)


def shuffled_batches(
    texts: TokenizedTexts, batches: Sequence[list[int]], generator: np.random.Generator, short_first: float = 0.0
) -> list[list[int]]:
    """The batches in random order; `short_first` as in `shuffled_buckets`."""
    shuffled = [batches[i] for i in generator.permutation(len(batches))]
    if not short_first:
        return shuffled
    tokens = np.array([sum(len(texts.ids[row]) for row in rows) / len(rows) for rows in shuffled])
    by_length = tokens.argsort(kind="stable").argsort() / len(shuffled)
    places = short_first * by_length + (1 - short_first) * generator.random(len(shuffled))
    return [shuffled[i] for i in places.argsort(kind="stable")]


def pad_id(tokenizer: PreTrainedTokenizerBase) -> int:
    """The id that fills up rows; 0 for a tokenizer that has none, as masks hide it anyway."""
    return 0 if tokenizer.pad_token_id is None else int(tokenizer.pad_token_id)  # pyright: ignore[reportArgumentType]
