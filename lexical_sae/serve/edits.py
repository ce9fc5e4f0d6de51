"""Edits that a request asks about: words suppressed, weights set. They make views, and the model stays as it is."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from lexical_sae.intervene import SuppressedModel, WeightChange, edited_by_table, find_words, opened_to_words
from lexical_sae.intervene.table_edit import table_with
from lexical_sae.intervene.words import same_word
from lexical_sae.models.lexical_sae import CLASSIFY, LexicalSAE
from lexical_sae.utils.errors import SettingsError


@dataclass(frozen=True)
class Edit:
    """Words to suppress, and new default weights of others."""

    suppress: tuple[str, ...] = ()
    weights: tuple[tuple[str, tuple[tuple[str, float], ...]], ...] = ()
    """By word and label."""

    @classmethod
    def of(cls, suppress: tuple[str, ...], weights: Mapping[str, Mapping[str, float]]) -> "Edit":
        """From the words of a request."""
        return cls(suppress, tuple((word, tuple(new.items())) for word, new in weights.items()))


class EditedModel(NamedTuple):
    """A view, and what was changed in it, as JSON fields."""

    model: LexicalSAE
    effect: str


def edited(model: LexicalSAE, edit: Edit) -> EditedModel:
    """The view in which the words are suppressed and the weights set."""
    changed: tuple[WeightChange, ...] = ()
    view = model
    if edit.weights:
        done = edited_by_table(model, table_with(model, {word: dict(new) for word, new in edit.weights}))
        view, changed = done.model, done.changed
    suppressed: list[dict[str, Any]] = []
    if edit.suppress:
        _refuse_both(view, edit)
        view = SuppressedModel(view, edit.suppress)
        for found in view.removed:
            suppressed.append({"word": found.word, "dimensions": view.dimensions.names(found.dimensions)})
    labels = model.labels[CLASSIFY] if changed else ()
    rows = [
        {
            "word": row.word,
            "before": dict(zip(labels, row.before, strict=True)),
            "after": dict(zip(labels, row.after, strict=True)),
        }
        for row in changed
    ]
    return EditedModel(view, json.dumps({"suppressed": suppressed, "changed": rows}))


def _refuse_both(model: LexicalSAE, edit: Edit) -> None:
    """A word that is suppressed with all its forms cannot have a new weight too."""
    opened = opened_to_words(model, edit.suppress)
    away = {i: found.word for found in find_words(opened, edit.suppress) for i in found.dimensions}
    names = {same_word(opened.dimensions[i].name): word for i, word in away.items()}
    for word, _ in edit.weights:
        if (key := same_word(word)) in names:
            raise SettingsError(f"{word!r} has a new weight, but is suppressed with {names[key]!r}; leave one out")
