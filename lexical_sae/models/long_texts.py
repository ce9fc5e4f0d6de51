"""Texts longer than the encoder reads at once: windows that overlap, and one state for every token.

    text   [CLS] a b c d e f g h [SEP]
    reads  [CLS] a b c d [SEP]   [CLS] c d e f [SEP]   [CLS] e f g h [SEP]
    gives  [CLS] a b c                 d e                   f g h [SEP]

1. A window is a stretch of the text between the special tokens that stand around the whole. The next one repeats a
   quarter of it; the last one ends where the text ends.
2. Each token's state comes from the one window in which it stands furthest from a cut, and all tokens of a word from
   the same. So whatever is made of states is made of one text, however many windows it took.
3. A text of one window is read as ever.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from lexical_sae.data.encoding import special_tokens_around
from lexical_sae.models.backbone import Backbone
from lexical_sae.models.config import ModelConfig
from lexical_sae.types import TokenIds, TokenMask

if TYPE_CHECKING:
    from lexical_sae.models.lexical_sae import LexicalSAE

OVERLAP = 0.25
"""Share of a window's tokens that the next one repeats."""
WINDOWS_AT_ONCE = 32
"""Windows that the encoder reads together, so that memory does not grow with their number."""

Encoder = Callable[[Int[Tensor, "W L"], Bool[Tensor, "W L"]], Float[Tensor, "W L E"]]


class Stretch(NamedTuple):
    """One window of a text, in tokens between the special ones."""

    start: int
    stop: int
    gives_from: int
    """First token whose state this window gives."""
    gives_to: int


def longest(window: int, special: int, most_windows: int) -> int:
    """Tokens that so many windows hold, special ones included. Example: 3 windows of 10 with 2 special -> 22"""
    room = window - special
    return special + room + (most_windows - 1) * _stride(room)


def window_of(config: ModelConfig, backbone: Backbone) -> int:
    """Most tokens that the encoder of a model with these settings reads at once."""
    return min(config.max_length, backbone.max_tokens)


def longest_text(config: ModelConfig, backbone: Backbone) -> int:
    """Longest text in tokens that a model with these settings reads."""
    special = backbone.tokenizer.num_special_tokens_to_add()
    return longest(window_of(config, backbone), special, config.windows_read)


def stretches(tokens: int, room: int, begins: Sequence[int] = ()) -> list[Stretch]:
    """The windows of a text of so many tokens, of which `room` fit in one.

    Args:
        tokens: Special ones not counted.
        room: Tokens of a window, special ones not counted.
        begins: Where words begin, ascending: a word's tokens are all given by one window where the overlap has room.

    Example: 8 tokens in windows of 4 -> 0 to 4, 3 to 7, 4 to 8
    """
    if tokens <= room:
        return [Stretch(0, tokens, 0, tokens)]
    starts = [*range(0, tokens - room, _stride(room)), tokens - room]
    cuts = [0]
    for before, after in zip(starts, starts[1:], strict=False):
        end = before + room
        middle = (after + end) // 2
        # The word that begins next; one without an end in sight is cut.
        found = bisect_left(begins, middle)
        cuts.append(begins[found] if found < len(begins) and begins[found] < end else middle)
    cuts.append(tokens)
    return [Stretch(start, start + room, *cuts[i : i + 2]) for i, start in enumerate(starts)]


def _stride(room: int) -> int:
    return room - int(room * OVERLAP)


class Windows(NamedTuple):
    """The windows of a batch of texts."""

    rows: Int[Tensor, " W"]
    """The text of each."""
    columns: Int[Tensor, "W L"]
    """The positions of the batch that each reads."""
    mask: Bool[Tensor, "W L"]
    """False behind the end of the shorter ones."""
    gives: Bool[Tensor, "W L"]
    """The positions whose states are taken from this window."""

    @classmethod
    def of(
        cls, mask: Bool[Tensor, "B L"], window: int, special: tuple[int, int], begins: Bool[Tensor, "B L"] | None = None
    ) -> "Windows":
        """All windows of padded texts.

        Args:
            mask: Real tokens; on either side of them is padding.
            window: Most tokens of a window.
            special: Special tokens before a text, and after it.
            begins: Where words begin; without it, windows hand over wherever their overlap's middle is.
        """
        before, after = special
        rows, columns, gives = [], [], []
        for row, real in enumerate(mask):
            at = real.nonzero().flatten()
            inner = at[before : len(at) - after]
            words = [] if begins is None else begins[row, inner].nonzero().flatten().tolist()
            parts = stretches(len(inner), window - before - after, words)
            for i, part in enumerate(parts):
                ends = at[:before], at[len(at) - after :]
                columns.append(torch.cat([ends[0], inner[part.start : part.stop], ends[1]]))
                given = torch.zeros(len(columns[-1]), dtype=torch.bool, device=mask.device)
                given[before + part.gives_from - part.start : before + part.gives_to - part.start] = True
                given[:before] = i == 0
                given[len(given) - after :] = i == len(parts) - 1
                gives.append(given)
                rows.append(row)
        lengths = torch.tensor([len(part) for part in columns], device=mask.device)
        padded = pad_sequence(columns, batch_first=True)
        is_real = torch.arange(padded.shape[1], device=mask.device) < lengths[:, None]
        owners = torch.tensor(rows, device=mask.device)
        return cls(owners, padded, is_real, pad_sequence(gives, batch_first=True))

    def sample(self, most: int, generator: torch.Generator | None = None) -> "Windows":
        """At most so many of each text, at random."""
        drawn = torch.rand(len(self.rows), generator=generator, device="cpu").to(self.rows.device)
        order = drawn.argsort()
        order = order[self.rows[order].argsort(stable=True)]
        rows = self.rows[order]
        rank = torch.arange(len(rows), device=rows.device) - torch.searchsorted(rows, rows)
        chosen = order[rank < most].sort().values
        return Windows(*(part[chosen] for part in self))

    def of_texts(self, some: Int[Tensor, " S"]) -> "Windows":
        """The windows of these texts, which are numbered anew in the order given."""
        chosen = [(self.rows == text).nonzero().flatten() for text in some]
        numbers = torch.arange(len(some), device=some.device).repeat_interleave(
            torch.tensor([len(part) for part in chosen], device=some.device)
        )
        at = torch.cat(chosen)
        return Windows(numbers, *(part[at] for part in self[1:]))

    def is_read(self, mask: Bool[Tensor, "B L"]) -> Bool[Tensor, "B L"]:
        """Positions whose states these windows give."""
        return torch.zeros_like(mask).index_put(self._given(slice(None)), torch.ones((), dtype=torch.bool).to(mask))

    def states(self, encoder: Encoder, input_ids: Int[Tensor, "B L"]) -> Float[Tensor, "B L E"]:
        """The state of every position that these windows give; zero elsewhere."""
        found: Tensor | None = None
        for start in range(0, len(self.rows), WINDOWS_AT_ONCE):
            some = slice(start, start + WINDOWS_AT_ONCE)
            ids, mask, gives = input_ids[self.rows[some, None], self.columns[some]], self.mask[some], self.gives[some]
            read = encoder(ids.masked_fill(~mask, 0), mask)
            if found is None:
                found = read.new_zeros(*input_ids.shape, read.shape[-1])
            # In place where nothing is learned: a copy per chunk would cost more than the windows.
            put = found.index_put if torch.is_grad_enabled() else found.index_put_
            found = put(self._given(some), read[gives])
        assert found is not None, "a batch has at least one text"
        return found

    def _given(self, some: slice) -> tuple[Tensor, Tensor]:
        """Texts and positions that some of the windows give."""
        gives = self.gives[some]
        return self.rows[some, None].expand_as(gives)[gives], self.columns[some][gives]


def windows_of(model: "LexicalSAE", input_ids: TokenIds, attention_mask: TokenMask) -> Windows | None:
    """The windows of a batch with a text that is longer than one; None for other batches."""
    if input_ids.shape[1] <= model.window or model.literal is None or model.config.long_texts == "cut":
        return None
    around = special_tokens_around(model.tokenizer)
    return Windows.of(attention_mask.bool(), model.window, around, model.literal.begins(input_ids))


def read_at_once(model: "LexicalSAE", texts: Iterable[Sequence[int]]) -> Iterator[list[int]]:
    """The tokens of tokenised texts as the encoder reads them: those of each text, or of each of its windows."""
    for ids in texts:
        at_once = torch.tensor([ids], device=model.gate.closed.device)
        windows = windows_of(model, at_once, torch.ones_like(at_once, dtype=torch.bool))
        if windows is None:
            yield list(ids)
        else:
            parts = zip(windows.columns, windows.mask, strict=True)
            yield from (at_once[0, at[mask]].tolist() for at, mask in parts)
