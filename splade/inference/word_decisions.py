"""Decisions at the words of sentences, in batches: the one loop under tagging, its explanations and its scores."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from splade.circuits.core import SparseCircuitState
from splade.data.batches import length_buckets
from splade.data.word_rows import Place, WordRows, tokenise_words
from splade.models.lexical_sae import TAG, LexicalSAE
from splade.progress import OnStep, Step, silent


@dataclass(frozen=True)
class ReadWords:
    """Some words and the decisions on them, a row of the state per word."""

    places: Sequence[Place]
    """Sentence and word of each row."""
    state: SparseCircuitState


def words_of(model: LexicalSAE, sentences: Sequence[Sequence[str]]) -> WordRows:
    """The sentences as rows of tokens that this model can read."""
    return tokenise_words(model.tokenizer, sentences, model.max_length)


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
        raise ValueError(f"batch_size is {batch_size}; it must be at least 1")
    model.eval()
    done = 0
    for some in length_buckets(rows.texts, batch_size):
        read = _read(model, sentences, rows, some, only)
        if read is not None:
            yield read
        done += len(some)
        on_step(Step("tagging", done, len(rows.texts)))


@torch.no_grad()
def _read(
    model: LexicalSAE,
    sentences: Sequence[Sequence[str]],
    rows: WordRows,
    some: Sequence[int],
    only: Collection[Place] | None,
) -> ReadWords | None:
    device = next(model.parameters()).device
    batch = rows.texts.batch(some)
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
    shapes = shapes_at(model, sentences, places)
    code = model.encode_positions(
        batch.input_ids.to(device),
        batch.attention_mask.to(device),
        chosen.to(device),
        None if shapes is None else shapes.to(device),
    )
    state = model.read(code, TAG)
    if not bool(state.logits.isfinite().all()):
        raise FloatingPointError("the model's logits are not numbers (NaN or infinity); its weights are damaged")
    return ReadWords(places, state)


def shapes_at(
    model: LexicalSAE, sentences: Sequence[Sequence[str]], places: Sequence[Place]
) -> Bool[Tensor, "N S"] | None:
    """How the words in these places are written; None for a model that does not ask."""
    if model.shapes is None:
        return None
    described = {number: model.shapes.describe(sentences[number]) for number in {sentence for sentence, _ in places}}
    return torch.stack([described[sentence][word] for sentence, word in places])
