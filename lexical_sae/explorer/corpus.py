"""The explorer's data: a model's table and some texts as their words, as plain data for strict JSON.

With it, a page decides on every text by itself, with words suppressed or weights changed, to the same result as
`lexical-sae edit` and `lexical-sae evaluate`: `static/table.js` has the arithmetic, and tests hold the two together.

Models with a hidden layer get `kind: opaque`: what their words contribute to each class, and no arithmetic. Nothing on
a page then says what an edit would do.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import torch

from lexical_sae.data.examples import TextSplit
from lexical_sae.data.sampling import sample_rows
from lexical_sae.explorer.forms import forms_among
from lexical_sae.explorer.occurrences import TextWords, read_occurrences
from lexical_sae.explorer.opaque import opaque_payload
from lexical_sae.explorer.packing import Packed, packed_counts, packed_floats
from lexical_sae.inference.labels import labels_of
from lexical_sae.intervene.word_table import is_word
from lexical_sae.intervene.words import suppressed_mask
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.word_views import document_table
from lexical_sae.utils.progress import OnStep, silent

FORMAT = 1
MOST_TEXTS = 20_000
MOST_OPAQUE_TEXTS = 500
"""Of models without a table, whose texts take far more room."""
MEMBER = 0.5
"""How much of an identity makes a text a member of its group."""
MOST_CELLS = 1_000_000
"""Weights of words that no text has: together with those of the texts, words times classes."""


@runtime_checkable
class Texts(Protocol):
    """Texts, with the place of each one's label if that is known."""

    @property
    def texts(self) -> Sequence[str]: ...
    @property
    def labels(self) -> Sequence[int] | None: ...


def corpus_payload(
    model: LexicalSAE, corpus: Texts, on_step: OnStep = silent, *, whole_table: bool = True, most: int = MOST_TEXTS
) -> dict[str, Any]:
    """What the explorer needs of a model and some texts.

    Args:
        model: A classifier.
        corpus: The texts; `labels` are places in the model's labels, or None. Identities of a split become groups.
        on_step: Gets progress.
        whole_table: Whether words that no text has are listed too, the strongest first, as far as there is room.
        most: Texts to take; beyond it they are drawn at random, and `left_out` counts the others.
    """
    most = min(most, MOST_TEXTS if model.literal is not None else MOST_OPAQUE_TEXTS)
    rows = sample_rows(len(corpus.texts), most, 0)
    texts = [corpus.texts[row] for row in rows]
    labels = None if corpus.labels is None else [int(corpus.labels[row]) for row in rows]
    own = (
        _of_table(model, texts, on_step, whole_table=whole_table)
        if model.literal is not None
        else opaque_payload(model, texts, on_step)
    )
    return {
        "format": FORMAT,
        "labels": list(labels_of(model)),
        "temperature": model.temperature,
        "left_out": len(corpus.texts) - len(rows),
        **own,
        "label": labels,
        "groups": _groups(corpus, rows),
    }


def _groups(corpus: Texts, rows: Sequence[int]) -> dict[str, Packed]:
    """Per identity the taken texts that mention it: members have one half or more, as in a bias audit."""
    identities = corpus.identities if isinstance(corpus, TextSplit) else None
    members = {
        name: [i for i, row in enumerate(rows) if column[row] >= MEMBER] for name, column in (identities or {}).items()
    }
    return {name: packed_counts(places) for name, places in members.items() if places}


def _of_table(model: LexicalSAE, texts: Sequence[str], on_step: OnStep, *, whole_table: bool) -> dict[str, Any]:
    opened, read = read_occurrences(model, texts, on_step)
    table = document_table(opened)
    dimensions = _listed(opened, read, whole_table=whole_table)
    place = {dimension: i for i, dimension in enumerate(dimensions)}
    bias = table.class_bias.detach().double().cpu()
    size = torch.zeros(len(dimensions)) if opened.context is None else opened.context.size[dimensions]
    return {
        "kind": "table",
        "bias": (bias - bias.mean()).tolist(),
        "context": _context(opened),
        "words": {
            "names": opened.dimensions.names(dimensions),
            "rows": packed_floats(table.word_vectors[dimensions]),
            "sizes": packed_floats(size),
            "suppressed": suppressed_mask(opened)[dimensions].nonzero().flatten().tolist(),
            "forms": {str(i): forms for i, forms in forms_among(opened, dimensions).items()},
        },
        "texts": {
            "text": [one.text for one in read],
            "tokens": packed_counts([one.tokens for one in read]),
            "tokens_cut": packed_counts([one.tokens_cut for one in read]),
            "count": packed_counts([len(one.dimensions) for one in read]),
            "word": packed_counts([place[d] for one in read for d in one.dimensions]),
            "start": packed_counts([start for one in read for start in one.starts]),
            "length": packed_counts([length for one in read for length in one.lengths]),
            "change": packed_floats(torch.tensor([change for one in read for change in one.changes])),
        },
    }


def _context(model: LexicalSAE) -> dict[str, float] | None:
    if model.context is None:
        return None
    return {"least": model.context.config.least, "eligible_from": model.context.config.eligible_from}


def _listed(model: LexicalSAE, read: Sequence[TextWords], *, whole_table: bool) -> list[int]:
    """The dimensions of the texts' words in their order, then those of others with weight, the strongest first."""
    own = sorted({dimension for one in read for dimension in one.dimensions})
    if not whole_table:
        return own
    rows = document_table(model).word_vectors.detach().cpu()
    strength = (rows - rows.mean(-1, keepdim=True)).abs().amax(-1) * is_word(model)
    strength[own] = 0
    room = max(0, MOST_CELLS // rows.shape[1] - len(own))
    order = strength.argsort(descending=True, stable=True)[:room]
    return own + order[strength[order] > 0].tolist()
