"""Verifying a certificate from the edited model's folder and the data alone.

The original is not needed: undoing the listed changes in the edited model gives it, which hashes prove.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lexical_sae.intervene import Lexicon, find_words
from lexical_sae.intervene.certificate.document import Certificate, Construction, Effect
from lexical_sae.intervene.certificate.effect import NamedTexts, measure_effect
from lexical_sae.intervene.certificate.fingerprints import hash_closed, hash_files, hash_input_embedding, hash_others
from lexical_sae.intervene.certificate.restoring import UNSEEN_SLACK, comparable_original, original_of, rows_of
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.persistence import from_pretrained
from lexical_sae.models.word_views import document_table, multi_piece_words
from lexical_sae.utils.errors import SavedFileError
from lexical_sae.utils.progress import OnStep, silent

EXTREME_LOGITS = (-math.inf, -1e30, -1.0, 0.0, 1.0, 1e30, math.inf, math.nan)
"""Logits at which a suppressed dimension must stay at zero."""
FIGURE_SLACK = 1e-4
"""Rounding difference allowed for a figure, relative to its size or one."""
COUNT_SLACK = 1e-3
"""The same for counts, as a share of the decisions: a text near a decision boundary may fall on either side."""


@dataclass(frozen=True)
class Check:
    """One claim, and whether it still holds."""

    claim: str
    holds: bool
    detail: str = ""
    """For a claim that fails: what was found instead."""


def verify(
    certificate: Certificate,
    edited: str | Path,
    data: NamedTexts | None = None,
    *,
    original: str | Path | None = None,
    batch_size: int = 32,
    on_step: OnStep = silent,
) -> tuple[Check, ...]:
    """The check of every claim, in order; nothing is loaded from a folder whose files are not the certified ones.

    Args:
        certificate: The certificate.
        edited: Folder of the edited model.
        data: The certified texts; without them the effect is not checked.
        original: Folder of the original, to compare its files too.
        batch_size: Texts per forward pass.
        on_step: Receives progress.

    Returns:
        The checks; leakage (level 3) is not measured again.

    Example: `all(check.holds for check in verify(read_certificate("certificate.json"), "edited"))`
    """
    files = verify_files(certificate, edited, original)
    if not all(check.holds for check in files):
        return files
    return files + verify_model(certificate, from_pretrained(edited), data, batch_size=batch_size, on_step=on_step)


def verify_files(certificate: Certificate, edited: str | Path, original: str | Path | None = None) -> tuple[Check, ...]:
    """Checks that the folders hold the certified files, byte for byte."""
    checks = [_files("the edited model's files are the certified ones", edited, certificate.edited_files)]
    if original is not None:
        checks.append(_files("the original's files are the certified ones", original, certificate.original_files))
    return tuple(checks)


def verify_model(
    certificate: Certificate,
    model: LexicalSAE,
    data: NamedTexts | None = None,
    *,
    batch_size: int = 32,
    on_step: OnStep = silent,
) -> tuple[Check, ...]:
    """Checks of the edited model once it is loaded and, with data, of its effect."""
    checks = [*_construction(model, certificate.construction)]
    if certificate.lexicon is not None and certificate.lexicon.forbid:
        checks.append(_lexicon(model, certificate.lexicon, certificate.construction))
    if data is not None:
        if certificate.effect is None:
            raise SavedFileError("this certificate claims no effect on a data set; leave the data out")
        checks += _effect(model, certificate.construction, certificate.effect, data, batch_size, on_step)
    return tuple(checks)


def _files(claim: str, folder: str | Path, expected: Mapping[str, str]) -> Check:
    if not Path(folder).expanduser().is_dir():
        raise SavedFileError(f"{folder} is not a folder; give the folder of the saved model")
    found = hash_files(folder)
    odd = [name for name in sorted(found.keys() | expected.keys()) if found.get(name) != expected.get(name)]
    return Check(claim, not odd, "" if not odd else f"changed, missing or added: {', '.join(odd)}")


@torch.no_grad()
def _construction(model: LexicalSAE, claimed: Construction) -> Iterator[Check]:
    removed = [dimension.id for dimension in claimed.removed if dimension.id < len(model.dimensions)]
    renamed = [d.name for d in claimed.removed if d.id not in removed or model.dimensions[d.id].name != d.name]
    yield Check("the removed dimensions have the names given", not renamed, ", ".join(renamed))
    is_open = [i for i in removed if not model.gate.closed[i]]
    yield Check("the gate suppresses them", not is_open, ", ".join(model.dimensions.names(is_open)))
    left = [
        i
        for i, activations in zip(removed, _at_extremes(model)[:, removed].T, strict=True)
        if not _is_zero(activations)
    ]
    yield Check("they are bitwise zero at every logit", not left, ", ".join(model.dimensions.names(left)))
    if claimed.added:
        known = multi_piece_words(model)
        yield Check("the added words are its last ones", known[-len(claimed.added) :] == claimed.added)
    if claimed.changed:
        yield from _changed(model, claimed)
    original = original_of(model, claimed)
    hashes = {
        "the input embedding is unchanged": (hash_input_embedding(model), claimed.input_embedding_sha256),
        "every other tensor is unchanged": (hash_others(original), claimed.other_tensors_sha256),
        "no other dimension was suppressed": (hash_closed(original), claimed.closed_before_sha256),
    }
    for claim, (found, expected) in hashes.items():
        yield Check(claim, found == expected, "" if found == expected else f"SHA-256 {found[:12]}…")


def _changed(model: LexicalSAE, claimed: Construction) -> Iterator[Check]:
    """Checks of changed rows: in the table, in what context knows of them, and before the edit."""
    table = document_table(model).word_vectors
    known = tuple(row for row in claimed.changed if row.id < len(table) and model.dimensions[row.id].name == row.name)
    odd = [row.name for row in claimed.changed if row not in known]
    after, ids = rows_of(known, "after", table), [row.id for row in known]
    holds = (table[ids] == after).all(-1) & (model.gate.closed[ids] == (after == 0).all(-1))
    if model.context is not None:
        holds &= model.context.size[ids] == after.abs().amax(-1)
    odd += [row.name for row, is_right in zip(known, holds.tolist(), strict=True) if not is_right]
    yield Check("the changed words have the weights given", not odd, ", ".join(odd))
    if not claimed.added:
        return
    original = comparable_original(model, claimed)
    added = [row for row in known if row.name in claimed.added]
    before = document_table(original).word_vectors[[row.id for row in added]]
    close = torch.isclose(before, rows_of(tuple(added), "before", table).view_as(before), rtol=0, atol=UNSEEN_SLACK)
    wrong = [row.name for row, is_right in zip(added, close.all(-1).tolist(), strict=True) if not is_right]
    yield Check("the original reads the added words as given", not wrong, ", ".join(wrong))


def _lexicon(model: LexicalSAE, lexicon: Lexicon, claimed: Construction) -> Check:
    """Checks that the forbidden words are among the removed ones, with all forms and senses."""
    claim = "the words that its lexicon forbids are among the removed ones"
    try:
        listed = find_words(model, lexicon.forbid)
    except ValueError as error:
        return Check(claim, False, str(error))
    left = {i for word in listed for i in word.dimensions} - {dimension.id for dimension in claimed.removed}
    return Check(claim, not left, ", ".join(model.dimensions.names(sorted(left))))


def _at_extremes(model: LexicalSAE) -> Float[Tensor, "N V"]:
    """Activations at extreme logits, with all orthographic features on."""
    closed = model.gate.closed
    logits = torch.tensor(EXTREME_LOGITS, device=closed.device)[:, None].expand(-1, len(closed))
    activations = model.saturation(model.gate(logits).activated)
    if model.shapes is None:
        return activations
    every_shape = torch.ones(len(activations), len(model.shapes), dtype=torch.bool, device=closed.device)
    return model.shapes.fill(activations, every_shape, closed)


def _is_zero(activations: Float[Tensor, " N"]) -> bool:
    """Whether all bits are zero; minus zero and NaN are not."""
    return not bool(activations.contiguous().view(torch.uint8).any())


def _effect(
    model: LexicalSAE, construction: Construction, claimed: Effect, data: NamedTexts, batch_size: int, on_step: OnStep
) -> Iterator[Check]:
    source = data.source()
    pairs = {
        "file": (source.file_sha256, claimed.data.file_sha256),
        "rows": (source.rows_sha256, claimed.data.rows_sha256),
        "number of texts": (source.texts, claimed.data.texts),
        "labels": (source.labelled, claimed.data.labelled),
    }
    odd = [name for name, (found, expected) in pairs.items() if found != expected]
    claim = f"the data is {claimed.data.name} as certified"
    yield Check(claim, not odd, "" if not odd else f"different {' and '.join(odd)}")
    if odd:
        return
    found = measure_effect(
        comparable_original(model, construction),
        model,
        construction.touched,
        data,
        head=claimed.head,
        batch_size=batch_size,
        on_step=on_step,
    )
    wrong = list(_differences(claimed.model_dump(), found.model_dump(), found.decisions))
    yield Check("the effect on it is the one given", not wrong, "; ".join(wrong))


def _differences(claimed: Mapping[str, Any], found: Mapping[str, Any], decisions: int) -> Iterator[str]:
    """Figures that differ by more than rounding."""
    for name, value in claimed.items():
        if name == "words":
            if [one["name"] for one in value] != [other["name"] for other in found[name]]:
                yield "the words differ"
                continue
            for one, other in zip(value, found[name], strict=True):
                yield from (f"{one['name']}: {text}" for text in _differences(one, other, decisions))
        elif isinstance(value, int | float) and not _close(value, found[name], decisions):
            yield f"{name} is {found[name]}, not {value}"


def _close(one: float, other: float | None, decisions: int) -> bool:
    if other is None:
        return False
    # Relative to what was found: a claim must not widen its own slack.
    slack = int(COUNT_SLACK * decisions) if isinstance(one, int) else FIGURE_SLACK * max(1.0, abs(other))
    return abs(one - other) <= slack
