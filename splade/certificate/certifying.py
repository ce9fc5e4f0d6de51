"""A certificate from the model before and the model after."""

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

import splade
from splade.certificate.document import Certificate, ChangedRow, Construction, RemovedDimension
from splade.certificate.effect import NamedTexts, measure_effect
from splade.certificate.fingerprints import hash_closed, hash_files, hash_input_embedding, hash_others
from splade.certificate.restoring import UNSEEN_SLACK, comparable_original, original_of
from splade.intervene import Lexicon, attached_lexicon, find_words
from splade.models.config import ModelConfig
from splade.models.lexical_sae import LexicalSAE
from splade.models.persistence import from_pretrained
from splade.models.word_views import document_table, multi_piece_words, with_words
from splade.progress import OnStep, silent

DIFFERENT = "the edited model differs from the original in more than closed words and weights of words"


def certify(
    original: str | Path,
    edited: str | Path,
    data: NamedTexts | None = None,
    *,
    head: str | None = None,
    batch_size: int = 32,
    on_step: OnStep = silent,
) -> Certificate:
    """The certificate that `edited` is `original` with words closed or given other weights, and nothing else changed.

    With `data`, the exact effect on those texts is measured as well. Two models that differ in anything else are
    refused: no certificate is better than a weak one.

    Example: `write_certificate(certify("model", "edited", NamedTexts("reviews", texts)), "certificate.json")`
    """
    before, after = from_pretrained(original), from_pretrained(edited)
    lexicon = attached_lexicon(edited)
    construction = _construction(before, after, lexicon)
    effect = None
    if data is not None:
        comparable = comparable_original(after, construction)
        touched = construction.touched
        effect = measure_effect(comparable, after, touched, data, head=head, batch_size=batch_size, on_step=on_step)
    return Certificate(
        written_by=splade.__version__,
        lexicon=lexicon,
        original_files=hash_files(original),
        edited_files=hash_files(edited),
        construction=construction,
        effect=effect,
    )


def _construction(before: LexicalSAE, after: LexicalSAE, lexicon: Lexicon | None) -> Construction:
    """What was done, proved by undoing it: that must give the original, bitwise."""
    added = _added_words(before, after)
    _refuse_other_settings(before, after)
    comparable = with_words(before, added)
    changed = tuple(_changed_rows(comparable, after, first_added=len(before.dimensions)))
    given_weights = {row.id for row in changed}
    closed = (after.gate.closed & ~comparable.gate.closed).nonzero().flatten().tolist()
    asked = find_words(after, lexicon.forbid) if lexicon is not None and lexicon.forbid else ()
    # A word of the lexicon that the original had closed is as silent as the others, and may be certified so.
    forbidden = {i for word in asked for i in word.dimensions}
    _refuse_open_words(after, forbidden)
    removed = [
        RemovedDimension(id=i, name=after.dimensions[i].name, was_open=i in closed)
        for i in sorted((forbidden | set(closed)) - given_weights)
    ]
    _refuse_no_change(comparable, after, given_weights, added)
    construction = Construction(
        removed=tuple(removed),
        changed=changed,
        added=added,
        closed_before_sha256=hash_closed(before),
        input_embedding_sha256=hash_input_embedding(before),
        other_tensors_sha256=hash_others(before),
    )
    restored = original_of(after, construction).state_dict()
    different = (name for name, tensor in before.state_dict().items() if not torch.equal(tensor, restored[name]))
    if name := next(different, None):
        raise ValueError(f"{DIFFERENT}: tensor {name!r}")
    return construction


def _added_words(before: LexicalSAE, after: LexicalSAE) -> tuple[str, ...]:
    """The literal words that only the edited model has: they come after the original's."""
    known, words = multi_piece_words(before), multi_piece_words(after)
    return words[len(known) :] if words[: len(known)] == known else ()


def _changed_rows(before: LexicalSAE, after: LexicalSAE, first_added: int) -> Iterator[ChangedRow]:
    """Words of the table that have other weights now."""
    if before.literal is None:
        return
    old, new = document_table(before).word_vectors, document_table(after).word_vectors
    is_other = (old != new).any(-1)
    # The row of an unseen word is computed from its spelling, and rounding may differ where it was computed again.
    is_other[first_added:] = ~torch.isclose(old, new, rtol=0, atol=UNSEEN_SLACK)[first_added:].all(-1)
    for i in is_other.nonzero().flatten().tolist():
        yield ChangedRow(
            id=i,
            name=after.dimensions[i].name,
            before=tuple(old[i].tolist()),
            after=tuple(new[i].tolist()),
            was_open=not before.gate.closed[i],
        )


def _refuse_other_settings(before: LexicalSAE, after: LexicalSAE) -> None:
    """The two models may differ in their words, and in nothing else."""
    if difference := _first_difference(before, after):
        raise ValueError(f"{DIFFERENT}: {difference}")


def _refuse_no_change(before: LexicalSAE, after: LexicalSAE, changed: Collection[int], added: Sequence[str]) -> None:
    opened = (before.gate.closed & ~after.gate.closed).nonzero().flatten().tolist()
    if other := [i for i in opened if i not in changed]:
        raise ValueError(
            f"the edited model has {before.dimensions[other[0]].name!r} open, which the original has closed; "
            "were the two folders given in the wrong order?"
        )
    if torch.equal(before.gate.closed, after.gate.closed) and not changed and not added:
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
    """What differs in settings beside the words, in a few words; empty if nothing does."""
    if _without_words(before.config) != _without_words(after.config) or before.labels != after.labels:
        return "settings or labels"
    if before.backbone.config.to_dict() != after.backbone.config.to_dict():
        return "architecture of the backbone"
    if _tokenizer_settings(before) != _tokenizer_settings(after):
        return "tokenizer"
    known = multi_piece_words(before)
    return (
        ""
        if multi_piece_words(after)[: len(known)] == known
        else "words of the original are gone; were the two folders given in the wrong order?"
    )


def _without_words(config: ModelConfig) -> ModelConfig:
    literal = config.literal and config.literal.model_copy(update={"multi_piece_words": ()})
    return config.model_copy(update={"literal": literal})


def _tokenizer_settings(model: LexicalSAE) -> dict[str, Any]:
    """How words are cut; without truncation and padding, which every call of a tokenizer sets anew."""
    backend: Any = model.tokenizer.backend_tokenizer
    settings = json.loads(backend.to_str())
    return {key: value for key, value in settings.items() if key not in ("truncation", "padding")}
