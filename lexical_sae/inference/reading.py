"""From any iterable of texts to decisions, in bounded memory: the one loop under predictions and explanations."""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from lexical_sae.data.batches import Batch, TokenizedTexts, batches, pad_id
from lexical_sae.data.encoding import EncodedText, encode
from lexical_sae.data.tables.cell_values import repair_text
from lexical_sae.data.words import TextLayout, layout_of
from lexical_sae.models.circuit_state import SparseCircuitState
from lexical_sae.models.lexical_sae import CLASSIFY, LexicalSAE
from lexical_sae.outputs import OutputKind
from lexical_sae.utils.errors import DamagedWeightsError, SettingsError

logger = logging.getLogger(__name__)

BATCHES_AT_ONCE = 16
"""Batches whose texts are held and sorted by length together; what an iterable gives later is not read yet."""

Answer = TypeVar("Answer")

_switching = threading.Lock()


@dataclass(frozen=True)
class ReadTexts:
    """Some texts and the decisions on them."""

    model: LexicalSAE
    """The model that decided, with a dimension for every literal word of the texts."""
    texts: Sequence[str]
    encoded: Sequence[EncodedText]
    token_ids: Sequence[Sequence[int]]
    batch: Batch
    state: SparseCircuitState
    mean_states: Float[Tensor, "B E"] | None = None
    """Mean encoder state of each text; None for a model that decides without the encoder."""

    @property
    def output(self) -> OutputKind:
        """What the model gives each."""
        return self.model.output

    @cached_property
    def layouts(self) -> tuple[TextLayout, ...]:
        """Where the tokens and words of each text stand."""
        return tuple(layout_of(*pair) for pair in zip(self.texts, self.encoded, strict=True))


def answers(
    model: LexicalSAE, texts: Any, batch_size: int, answer: Callable[[ReadTexts], Iterable[Answer]]
) -> Iterator[Answer]:
    """What `answer` makes of every text, in their order; texts are read as they are needed."""
    model.head(CLASSIFY)
    if batch_size < 1:
        raise SettingsError(f"batch_size is {batch_size}; it must be at least 1")
    stop_training(model)
    coming = _checked(texts)
    num_cut = 0
    while pool := list(islice(coming, BATCHES_AT_ONCE * batch_size)):
        encoded = encode(model.tokenizer, pool, model.max_length)
        tokenized = TokenizedTexts.of(encoded, pad_id(model.tokenizer))
        num_cut += tokenized.num_cut
        opened = model.opened_to(tokenized.ids)
        made: dict[int, Answer] = {}
        for batch in batches(tokenized, batch_size):
            rows = batch.rows.tolist()
            with torch.no_grad():
                read = ReadTexts(
                    opened,
                    [pool[row] for row in rows],
                    [encoded[row] for row in rows],
                    [tokenized.ids[row] for row in rows],
                    batch,
                    *read_with_states(opened, batch),
                )
                made.update(zip(rows, answer(read), strict=True))
        yield from (made[row] for row in range(len(pool)))
    if num_cut:
        logger.warning(
            "%d texts were longer than the %d tokens that the model reads; explain_windows reads them whole",
            num_cut,
            model.max_length,
        )


def is_one_text(texts: Any) -> bool:
    """Whether this is one text instead of several; what is neither is refused."""
    if isinstance(texts, str):
        return True
    # A table would give the names of its columns, and an array without dimensions nothing.
    if isinstance(texts, bytes | dict) or not isinstance(texts, Iterable) or getattr(texts, "ndim", 1) != 1:
        raise SettingsError(f"texts is {type(texts).__name__}; give one string, or put your texts in a list")
    return False


def stop_training(model: LexicalSAE) -> None:
    """Dropout off, and whatever else only training does; no thread reads with a model that is half switched."""
    # Under the lock even to look: the flag of the whole is cleared first, those of its parts one by one afterwards.
    with _switching:
        if model.training:
            # Walks over every module: worth a tenth of a short text's time when there is nothing to change.
            model.eval()


@torch.no_grad()
def read_batch(model: LexicalSAE, batch: Batch) -> SparseCircuitState:
    """The decisions on a batch; a model whose logits are not numbers is refused, for it decides nothing."""
    return read_with_states(model, batch)[0]


@torch.no_grad()
def read_with_states(model: LexicalSAE, batch: Batch) -> tuple[SparseCircuitState, Float[Tensor, "B E"] | None]:
    """The same with the mean encoder state of each text, where the model asks the encoder at all."""
    device = next(model.parameters()).device
    input_ids, mask = batch.input_ids.to(device), batch.attention_mask.to(device)
    states = model.encoder_states(input_ids, mask) if model.asks_encoder else None
    state = model.read(model.encode_sparse(input_ids, mask, states))
    if not bool(state.logits.isfinite().all()):
        raise DamagedWeightsError("the model's logits are not numbers (NaN or infinity); its weights are damaged")
    if states is None:
        return state, None
    return state, (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)


def _checked(texts: Any) -> Iterator[str]:
    """The texts as a tokenizer takes them; anything but a string is refused with its row."""
    for row, text in enumerate([texts] if is_one_text(texts) else texts):
        if not isinstance(text, str):
            raise SettingsError(f"text {row} is {type(text).__name__} {text!r}, not a string")
        yield repair_text(text)
