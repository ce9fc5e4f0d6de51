"""A certificate from the model before and the model after."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import torch

import splade
from splade.certificate.document import Certificate, Construction, RemovedDimension
from splade.certificate.effect import NamedTexts, measure_effect
from splade.certificate.fingerprints import CLOSED, hash_closed, hash_files, hash_input_embedding, hash_others
from splade.intervene import attached_lexicon, find_words
from splade.models.lexical_sae import LexicalSAE
from splade.models.persistence import from_pretrained
from splade.progress import OnStep, silent


def certify(
    original: str | Path,
    edited: str | Path,
    data: NamedTexts | None = None,
    *,
    head: str | None = None,
    batch_size: int = 32,
    on_step: OnStep = silent,
) -> Certificate:
    """The certificate that `edited` is `original` with words closed and nothing else changed.

    With `data`, the exact effect on those texts is measured as well. Two models that differ in anything but closed
    words are refused: no certificate is better than a weak one.

    Example: `write_certificate(certify("model", "edited", NamedTexts("reviews", texts)), "certificate.json")`
    """
    before, after = from_pretrained(original), from_pretrained(edited)
    _refuse_other_changes(before, after)
    lexicon = attached_lexicon(edited)
    closed = (after.gate.closed & ~before.gate.closed).nonzero().flatten().tolist()
    asked = find_words(after, lexicon.forbid) if lexicon is not None and lexicon.forbid else ()
    # A word of the lexicon that the original had closed is as silent as the others, and may be certified so.
    forbidden = {i for word in asked for i in word.dimensions}
    _refuse_open_words(after, forbidden)
    removed = [
        RemovedDimension(id=i, name=after.dimensions[i].name, was_open=i in closed)
        for i in sorted(forbidden | set(closed))
    ]
    construction = Construction(
        removed=tuple(removed),
        closed_before_sha256=hash_closed(before),
        input_embedding_sha256=hash_input_embedding(after),
        other_tensors_sha256=hash_others(after),
    )
    effect = None
    if data is not None:
        effect = measure_effect(before, after, closed, data, head=head, batch_size=batch_size, on_step=on_step)
    return Certificate(
        written_by=splade.__version__,
        lexicon=lexicon,
        original_files=hash_files(original),
        edited_files=hash_files(edited),
        construction=construction,
        effect=effect,
    )


def _refuse_other_changes(before: LexicalSAE, after: LexicalSAE) -> None:
    """The two models may differ in words that the second has closed, and in nothing else."""
    if difference := _first_difference(before, after):
        raise ValueError(f"the edited model differs from the original in more than closed words: {difference}")
    if bool((before.gate.closed & ~after.gate.closed).any()):
        index = int((before.gate.closed & ~after.gate.closed).nonzero()[0])
        raise ValueError(
            f"the edited model has {before.dimensions[index].name!r} open, which the original has closed; "
            "were the two folders given in the wrong order?"
        )
    if torch.equal(before.gate.closed, after.gate.closed):
        raise ValueError("the two models have the same words closed; there is no removal to certify")


def _refuse_open_words(model: LexicalSAE, forbidden: Collection[int]) -> None:
    """A lexicon that promises more than was done would be read as part of what is certified."""
    if still_open := [i for i in sorted(forbidden) if not model.gate.closed[i]]:
        names = ", ".join(model.dimensions.names(still_open))
        raise ValueError(
            f"the edited model's lexicon forbids words that are open in it: {names}; "
            "make it anew from the original with `lexical-sae edit`"
        )


def _first_difference(before: LexicalSAE, after: LexicalSAE) -> str:
    """What differs beside closed words, in a few words; empty if nothing does."""
    if before.config != after.config or before.labels != after.labels:
        return "settings or labels"
    if before.backbone.config.to_dict() != after.backbone.config.to_dict():
        return "architecture of the backbone"
    if _tokenizer_settings(before) != _tokenizer_settings(after):
        return "tokenizer"
    tensors = after.state_dict()
    changed = (n for n, t in before.state_dict().items() if n != CLOSED and not torch.equal(t, tensors[n]))
    return next((f"tensor {name!r}" for name in changed), "")


def _tokenizer_settings(model: LexicalSAE) -> dict[str, Any]:
    """How words are cut; without truncation and padding, which every call of a tokenizer sets anew."""
    backend: Any = model.tokenizer.backend_tokenizer
    settings = json.loads(backend.to_str())
    return {key: value for key, value in settings.items() if key not in ("truncation", "padding")}
