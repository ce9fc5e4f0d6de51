"""The words of texts after one encoder pass: all that a model with literal words needs in order to decide.

Kept for every written word, with weight or without, is how far context would move it were that material. So whatever
weights an edit gives, shifts follow from it as they would in the edited model.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lexical_sae.data.batches import Batch, TokenizedTexts, batches, pad_id
from lexical_sae.data.encoding import EncodedText, encode
from lexical_sae.data.tables.cell_values import repair_text
from lexical_sae.data.words import layout_of
from lexical_sae.inference.reading import stop_training
from lexical_sae.intervene.word_table import is_word
from lexical_sae.models.layers.cut_words import NO_WORD
from lexical_sae.models.layers.literal_words import occurrences
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.utils.progress import OnStep, Step, silent

BATCH = 32


@dataclass
class TextWords:
    """The words of one text, in reading order; columns of equal length."""

    text: str
    tokens: int
    """Special tokens included: they set the default activation."""
    tokens_cut: int
    dimensions: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    """Characters (code points) before each."""
    lengths: list[int] = field(default_factory=list)
    changes: list[float] = field(default_factory=list)
    """What context would add to the activation, as a multiple of the default."""


def read_occurrences(
    model: LexicalSAE, texts: Sequence[str], on_step: OnStep = silent
) -> tuple[LexicalSAE, list[TextWords]]:
    """A view of the model with a dimension for every word of the texts, and the words of each text.

    Args:
        model: A model with literal words.
        texts: The texts.
        on_step: Gets progress.
    """
    assert model.literal is not None
    stop_training(model)
    clean = [repair_text(text) for text in texts]
    encoded = encode(model.tokenizer, clean, model.max_length)
    tokenized = TokenizedTexts.of(encoded, pad_id(model.tokenizer))
    opened = model.opened_to(tokenized.ids)
    found = [TextWords(text, len(one), one.tokens_cut) for text, one in zip(clean, encoded, strict=True)]
    are_words, done = is_word(opened), 0
    for batch in batches(tokenized, BATCH):
        for row, entries in _words_of(opened, batch, are_words):
            _place(found[row], encoded[row], entries)
        done += len(batch.rows)
        on_step(Step("reading", done, len(texts)))
    return opened, found


Entry = tuple[int, int, float]
"""Position, dimension and change of one written word."""


@torch.no_grad()
def _words_of(model: LexicalSAE, batch: Batch, are_words: Tensor) -> Iterator[tuple[int, list[Entry]]]:
    device = next(model.parameters()).device
    input_ids, mask = batch.input_ids.to(device), batch.attention_mask.to(device)
    words = model.own_words(input_ids).masked_fill(~mask, NO_WORD)
    words = words.masked_fill(~are_words.to(device)[words.clamp(min=0)], NO_WORD)
    rows, positions, dimensions = occurrences(words)
    changes = _changes(model, input_ids, mask, words)
    entries: list[list[Entry]] = [[] for _ in batch.rows]
    columns = (rows, positions, dimensions, changes)
    for row, *entry in zip(*(column.tolist() for column in columns), strict=True):
        entries[row].append((entry[0], entry[1], entry[2]))
    yield from zip(batch.rows.tolist(), entries, strict=True)


def _changes(
    model: LexicalSAE, input_ids: Int[Tensor, "B L"], mask: Tensor, words: Int[Tensor, "B L"]
) -> Float[Tensor, " N"]:
    is_read = words != NO_WORD
    if model.context is None or not bool(is_read.any()):
        return torch.zeros(int(is_read.sum()), device=words.device)
    states = model.encoder_states(input_ids, mask)
    assert model.literal is not None
    return model.context.change(model.literal.word_states(states, input_ids, is_read))


def _place(found: TextWords, encoded: EncodedText, entries: Sequence[Entry]) -> None:
    layout = layout_of(found.text, encoded)
    for position, dimension, change in entries:
        word = layout.token_words[position]
        start, end = layout.token_spans[position] if word is None else layout.word_spans[word]
        found.dimensions.append(dimension)
        found.starts.append(start)
        found.lengths.append(end - start)
        found.changes.append(change)
