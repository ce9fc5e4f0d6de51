"""Encoder states of text pieces, computed once with the frozen encoder.

In some of the training pieces tokens are masked (the head must guess them from their context) and others swapped for
random tokens of the vocabulary (so that rare words are seen too).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from lexical_sae.data.batches import TokenizedTexts, pad_id
from lexical_sae.data.encoding import encode
from lexical_sae.data.vocabulary import CONTINUATION, Vocabulary
from lexical_sae.models.backbone import Backbone
from lexical_sae.studies.lexical_head.text import Piece
from lexical_sae.utils.errors import DataError


@dataclass(frozen=True)
class Positions:
    """Encoder states of many token positions, and the original token at each."""

    states: Float[Tensor, "N E"]
    """Half precision: twice as many fit in memory."""
    targets: Int[Tensor, " N"]
    is_masked: Bool[Tensor, " N"]
    is_whole_word: Bool[Tensor, " N"]
    """Whether the token is a word by itself, not the beginning or the rest of one."""

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, chosen: Bool[Tensor, " N"] | Int[Tensor, " K"]) -> "Positions":
        """Some of the positions, by mask or by index."""
        return Positions(self.states[chosen], self.targets[chosen], self.is_masked[chosen], self.is_whole_word[chosen])


@dataclass(frozen=True)
class Corruption:
    """How many tokens of a piece are masked or replaced."""

    pieces: float = 0.0
    """Share of corrupted pieces."""
    masked: float = 0.15
    swapped: float = 0.15


def encode_positions(
    backbone: Backbone,
    pieces: Sequence[Piece],
    vocabulary: Vocabulary,
    *,
    corruption: Corruption | None = None,
    seed: int = 0,
    on_progress: Callable[[float], None] = lambda _: None,
    batch_tokens: int = 4096,
) -> Positions:
    """The encoder's states at every token of the pieces, special tokens left out; pieces of like length together."""
    corruption = corruption or Corruption()
    generator = torch.Generator().manual_seed(seed)
    prefix, suffix = _special_tokens_around(backbone.tokenizer)
    framed = TokenizedTexts(
        tuple([*prefix, *piece, *suffix] for piece in pieces), (0,) * len(pieces), pad_id(backbone.tokenizer)
    )
    continues = torch.tensor([name.startswith(CONTINUATION) for name in vocabulary.names])
    ordinary = vocabulary.feature_mask.nonzero().flatten()
    parts: list[Positions] = []
    done, total = 0, sum(map(len, framed.ids))
    backbone.eval()
    for rows in _similar_lengths(framed, batch_tokens):
        batch = framed.batch(rows)
        lengths = batch.attention_mask.sum(1, keepdim=True)
        place = torch.arange(batch.input_ids.shape[1])[None]
        is_text = (place >= len(prefix)) & (place < lengths - len(suffix))
        input_ids, targets, is_masked = _corrupt(
            batch.input_ids, is_text, corruption, ordinary, _mask_id(backbone), generator
        )
        begins = ~continues[targets]
        next_begins = torch.cat([begins[:, 1:], torch.ones_like(begins[:, :1])], dim=1)
        device = backbone.decoder.weight.device
        with torch.no_grad():
            states = backbone.encoder_states(input_ids.to(device), batch.attention_mask.to(device)).cpu()
        parts.append(
            Positions(states[is_text].half(), targets[is_text], is_masked[is_text], (begins & next_begins)[is_text])
        )
        done += int(lengths.sum())
        on_progress(done / total)
    return _joined(parts)


def _corrupt(
    input_ids: Int[Tensor, "B L"],
    is_text: Bool[Tensor, "B L"],
    corruption: Corruption,
    ordinary: Int[Tensor, " V"],
    mask_id: int,
    generator: torch.Generator,
) -> tuple[Int[Tensor, "B L"], Int[Tensor, "B L"], Bool[Tensor, "B L"]]:
    """Token ids to read, token ids to predict, and which ones are masked.

    At a masked position the target is the hidden token; at a swapped one, the token put there.
    """
    touched = torch.rand(len(input_ids), 1, generator=generator) < corruption.pieces
    draw = torch.rand(input_ids.shape, generator=generator)
    is_masked = touched & is_text & (draw < corruption.masked)
    is_swapped = touched & is_text & ~is_masked & (draw < corruption.masked + corruption.swapped)
    swaps = ordinary[torch.randint(len(ordinary), input_ids.shape, generator=generator)]
    targets = torch.where(is_swapped, swaps, input_ids)
    return targets.masked_fill(is_masked, mask_id), targets, is_masked


def _joined(parts: Sequence[Positions]) -> Positions:
    return Positions(
        torch.cat([part.states for part in parts]),
        torch.cat([part.targets for part in parts]),
        torch.cat([part.is_masked for part in parts]),
        torch.cat([part.is_whole_word for part in parts]),
    )


def _similar_lengths(texts: TokenizedTexts, batch_tokens: int) -> Iterator[list[int]]:
    """Rows in batches of about `batch_tokens` tokens, sorted by length so that little is padding."""
    rows: list[int] = []
    for row in sorted(range(len(texts)), key=lambda row: len(texts.ids[row])):
        rows.append(row)
        if len(rows) * len(texts.ids[row]) >= batch_tokens:
            yield rows
            rows = []
    if rows:
        yield rows


def _special_tokens_around(tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
    """Special tokens before and after a text. Example: BERT gives `[CLS]` and `[SEP]`."""
    (plain,), (framed,) = (encode(tokenizer, ["a"], add_special_tokens=add) for add in (False, True))
    for start in range(len(framed) - len(plain) + 1):
        if framed.ids[start : start + len(plain)] == plain.ids:
            return framed.ids[:start], framed.ids[start + len(plain) :]
    return [], []


def _mask_id(backbone: Backbone) -> int:
    mask_id = backbone.tokenizer.mask_token_id
    if not isinstance(mask_id, int):
        raise DataError("the tokenizer has no mask token; choose the encoder of a masked language model")
    return mask_id
