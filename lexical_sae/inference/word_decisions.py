"""Decisions at the words of sentences, in batches: the one loop under tagging, its explanations and its scores."""

import functools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from lexical_sae.data.batches import Batch, batches
from lexical_sae.data.word_rows import Place, WordRows, tokenize_words
from lexical_sae.inference.reading import stop_training
from lexical_sae.models.circuit_state import SparseCircuitState
from lexical_sae.models.layers.shapes import ShapeFeatures
from lexical_sae.models.lexical_sae import TAG, LexicalSAE
from lexical_sae.utils.errors import DamagedWeightsError, SettingsError
from lexical_sae.utils.progress import OnStep, silent


@dataclass(frozen=True)
class ReadWords:
    """Some words and the decisions on them, a row of the state per word."""

    places: Sequence[Place]
    """Sentence and word of each row."""
    state: SparseCircuitState


def words_of(model: LexicalSAE, sentences: Sequence[Sequence[str]]) -> WordRows:
    """The sentences as rows of tokens that this model can read."""
    return tokenize_words(model.tokenizer, sentences, model.max_length)


def read_words(
    model: LexicalSAE,
    sentences: Sequence[Sequence[str]],
    rows: WordRows,
    *,
    only: Collection[Place] | None = None,
    batch_size: int = 32,
    on_step: OnStep = silent,
) -> Iterator[ReadWords]:
    """The decisions on every word, or on some only; batches come as their rows fit together, in no order."""
    model.head(TAG)
    if batch_size < 1:
        raise SettingsError(f"batch_size is {batch_size}; it must be at least 1")
    stop_training(model)
    # A sentence in several windows is described once.
    shapes_of = functools.cache(functools.partial(_shapes_of, model.shapes, sentences)) if model.shapes else None
    for batch in batches(rows.texts, batch_size, "tagging", on_step):
        read = _read(model, rows, batch, only, shapes_of)
        if read is not None:
            yield read


@torch.no_grad()
def _read(
    model: LexicalSAE,
    rows: WordRows,
    batch: Batch,
    only: Collection[Place] | None,
    shapes_of: Callable[[int], Bool[Tensor, "W S"]] | None,
) -> ReadWords | None:
    """The decisions on the wanted words of some rows; `shapes_of` gives the orthographic features of a sentence's
    words."""
    device = next(model.parameters()).device
    some = batch.rows.tolist()
    chosen = torch.zeros_like(batch.attention_mask)
    places: list[Place] = []
    for number, row in enumerate(some):
        # By position, as a mask counts them.
        for position, word in sorted(rows.first_tokens(row)):
            place = (rows.sentences[row], word)
            if only is None or place in only:
                chosen[number, position] = True
                places.append(place)
    if not places:
        return None
    # Of all words, whichever are wanted: the encoder may get them as input.
    shapes = None if shapes_of is None else rows.at_first_tokens(some, shapes_of).to(device)
    code = model.encode_positions(
        batch.input_ids.to(device), batch.attention_mask.to(device), chosen.to(device), shapes
    )
    state = model.read(code, TAG)
    if not bool(state.logits.isfinite().all()):
        raise DamagedWeightsError("the model's logits are not numbers (NaN or infinity); its weights are damaged")
    return ReadWords(places, state)


def _shapes_of(shapes: ShapeFeatures, sentences: Sequence[Sequence[str]], sentence: int) -> Bool[Tensor, "W S"]:
    return shapes.describe(sentences[sentence])
