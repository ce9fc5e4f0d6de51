"""Predictions and their explanations, text by text."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from splade.circuits.core import SparseCircuitState
from splade.circuits.sparse_code import SparseCode
from splade.data.batches import length_buckets, tokenise
from splade.explanation import Explanation, WordContribution
from splade.mechanistic.attribution import attribute_code, code_identity_error
from splade.models.lexical_sae import CLASSIFY, LexicalSAE


@torch.no_grad()
def explain(model: LexicalSAE, texts: Any, batch_size: int = 32) -> list[Explanation]:
    """The predicted label of each text of an iterable, and every active word's contribution to it."""
    texts = _listed(texts)
    if model.training:
        # Walks over every module: worth a tenth of a short text's time when there is nothing to change.
        model.eval()
    device = next(model.parameters()).device
    tokenised = tokenise(model.tokenizer, texts, model.max_length)
    explanations: dict[int, Explanation] = {}
    for rows in length_buckets(tokenised, batch_size):
        batch = tokenised.batch(rows)
        code = model.encode_sparse(batch.input_ids.to(device), batch.attention_mask.to(device))
        chosen = [(texts[row], tokenised.tokens_cut[row]) for row in rows]
        explanations.update(zip(rows, _explain_batch(model, model.read(code), chosen), strict=True))
    return [explanations[row] for row in range(len(texts))]


def _listed(texts: Any) -> list[Any]:
    """The texts of a list, tuple, generator, array or column; one text alone is refused."""
    if isinstance(texts, str | bytes | dict) or not isinstance(texts, Iterable):
        raise ValueError(f"texts is one {type(texts).__name__}; put your texts in a list")
    return list(texts)


def _explain_batch(
    model: LexicalSAE, state: SparseCircuitState, texts: Sequence[tuple[str, int]]
) -> Iterator[Explanation]:
    labels = state.logits.argmax(-1)
    contributions = attribute_code(state, labels, centred=True)
    probabilities = state.logits.softmax(-1)
    biases = state.b_eff - state.b_eff.mean(-1, keepdim=True)
    errors = code_identity_error(state)
    for row, (text, tokens_cut) in enumerate(texts):
        label = int(labels[row])
        yield Explanation(
            text=text,
            label=model.labels[CLASSIFY][label],
            probability=float(probabilities[row, label]),
            words=_active_words(model, state.code, row, contributions),
            bias=float(biases[row, label]),
            identity_error=float(errors[row]),
            tokens_cut=tokens_cut,
        )


def _active_words(
    model: LexicalSAE, code: SparseCode, row: int, contributions: Float[Tensor, " K"]
) -> tuple[WordContribution, ...]:
    """The active words of one text, the most telling first."""
    here = code.text(row)
    order = contributions[here].abs().argsort(descending=True, stable=True)
    entries = zip(code.ids[here][order].tolist(), code.values[here][order].tolist(), strict=True)
    values = contributions[here][order].tolist()
    named = [(model.dimensions[i], strength) for i, strength in entries]
    return tuple(
        WordContribution(dimension.name, dimension.kind, strength, value)
        for (dimension, strength), value in zip(named, values, strict=True)
    )
