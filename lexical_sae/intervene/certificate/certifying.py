"""Making a certificate from the original and the edited model."""

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

import lexical_sae
from lexical_sae.intervene import Lexicon, attached_lexicon, find_words
from lexical_sae.intervene.certificate.document import Certificate, ChangedRow, Construction, RemovedDimension
from lexical_sae.intervene.certificate.effect import NamedTexts, measure_effect
from lexical_sae.intervene.certificate.fingerprints import hash_closed, hash_files, hash_input_embedding, hash_others
from lexical_sae.intervene.certificate.restoring import UNSEEN_SLACK, comparable_original, original_of
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.persistence import from_pretrained
from lexical_sae.models.word_views import document_table, multi_piece_words, with_words
from lexical_sae.utils.errors import SavedFileError
from lexical_sae.utils.progress import OnStep, silent

DIFFERENT = "the edited model differs from the original in more than suppressed words and weights of words"


def certify(
    original: str | Path,
    edited: str | Path,
    data: NamedTexts | None = None,
    *,
    head: str | None = None,
    batch_size: int = 32,
    on_step: OnStep = silent,
) -> Certificate:
    """The certificate that `edited` is `original` with words suppressed or reweighted, and nothing else changed.

    Args:
        original: Folder of the original model.
        edited: Folder of the edited model.
        data: Texts on which to measure the effect (level 2).
        head: Head to measure with; by default the one for texts.
        batch_size: Texts per forward pass.
        on_step: Receives progress.

    Returns:
        The certificate, without level 3.

    Raises:
        ValueError: The models differ in anything else.

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
        written_by=lexical_sae.__version__,
        lexicon=lexicon,
        original_files=hash_files(original),
        edited_files=hash_files(edited),
        construction=construction,
        effect=effect,
    )


def _construction(before: LexicalSAE, after: LexicalSAE, lexicon: Lexicon | None) -> Construction:
    """The changes, proved by undoing them, which must give the original bitwise."""
    added = _added_words(before, after)
    _refuse_other_settings(before, after)
    comparable = with_words(before, added)
    changed = tuple(_changed_rows(comparable, after, first_added=len(before.dimensions)))
    given_weights = {row.id for row in changed}
    closed = (after.gate.closed & ~comparable.gate.closed).nonzero().flatten().tolist()
    listed = find_words(after, lexicon.forbid) if lexicon is not None and lexicon.forbid else ()
    # A word of the lexicon that was already suppressed in the original may be certified too.
    forbidden = {i for word in listed for i in word.dimensions}
    _refuse_active_words(after, forbidden)
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
        raise SavedFileError(f"{DIFFERENT}: tensor {name!r}")
    return construction


def _added_words(before: LexicalSAE, after: LexicalSAE) -> tuple[str, ...]:
    """The literal words that only the edited model has; they come last."""
    known, words = multi_piece_words(before), multi_piece_words(after)
    return words[len(known) :] if words[: len(known)] == known else ()


def _changed_rows(before: LexicalSAE, after: LexicalSAE, first_added: int) -> Iterator[ChangedRow]:
    """Words of the table whose weights changed."""
    if before.literal is None:
        return
    old, new = document_table(before).word_vectors, document_table(after).word_vectors
    is_other = (old != new).any(-1)
    # The row of an unseen word is recomputed from its spelling, and rounding may differ.
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
        raise SavedFileError(f"{DIFFERENT}: {difference}")


def _refuse_no_change(before: LexicalSAE, after: LexicalSAE, changed: Collection[int], added: Sequence[str]) -> None:
    opened = (before.gate.closed & ~after.gate.closed).nonzero().flatten().tolist()
    if other := [i for i in opened if i not in changed]:
        raise SavedFileError(
            f"{before.dimensions[other[0]].name!r} is suppressed in the original but not in the edited model; "
            "were the two folders given in the wrong order?"
        )
    if torch.equal(before.gate.closed, after.gate.closed) and not changed and not added:
        raise SavedFileError("the two models have the same suppressed words; there is no removal to certify")


def _refuse_active_words(model: LexicalSAE, forbidden: Collection[int]) -> None:
    """Raise an error if the lexicon forbids more than is suppressed: it would be read as certified."""
    if still_open := [i for i in sorted(forbidden) if not model.gate.closed[i]]:
        names = ", ".join(model.dimensions.names(still_open))
        raise SavedFileError(
            f"the edited model's lexicon forbids words that are not suppressed in it: {names}; "
            "edit the original again with `lexical-sae edit`"
        )


def _first_difference(before: LexicalSAE, after: LexicalSAE) -> str:
    """The first difference in anything but words; empty if there is none."""
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
    """How words are tokenized; without truncation and padding, which every call sets."""
    backend: Any = model.tokenizer.backend_tokenizer
    settings = json.loads(backend.to_str())
    return {key: value for key, value in settings.items() if key not in ("truncation", "padding")}
