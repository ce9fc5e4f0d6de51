"""A saved model as the service holds it: its weights mapped, its name and hash, its table, and views of edits."""

import logging
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from lexical_sae.inference import explain
from lexical_sae.inference.labels import label_index, labels_of
from lexical_sae.inference.tagging import tag
from lexical_sae.intervene import attached_frequencies, attached_lexicon, model_table
from lexical_sae.intervene.word_table import WordRow
from lexical_sae.models.lexical_sae import CLASSIFY, TAG, LexicalSAE
from lexical_sae.models.persistence import from_pretrained, saved_sha256
from lexical_sae.models.table_head import TableHead
from lexical_sae.models.word_views import document_table
from lexical_sae.runs import Run
from lexical_sae.runs.pages.explorer import about
from lexical_sae.runs.run import find_run
from lexical_sae.serve.edits import Edit, EditedModel, edited
from lexical_sae.utils.errors import LexicalSAEError

logger = logging.getLogger(__name__)

KEPT_EDITS = 8
"""Views of the latest edits, because people ask about several texts with the same edit."""
WARMING = "a text to read before anybody asks"


@dataclass(eq=False)
class ServedModel:
    """A model of the service."""

    name: str
    folder: Path
    model: LexicalSAE
    sha256: str
    _edits: "OrderedDict[Edit, EditedModel]" = field(default_factory=OrderedDict, repr=False)
    _making: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @classmethod
    def load(cls, name: str, folder: Path) -> "ServedModel":
        """The model of a folder, which has answered once: the first client does not wait for what is made only then."""
        model = from_pretrained(folder, mapped=True)
        made = cls(name, folder, model, saved_sha256(folder))
        if CLASSIFY in made.tasks:
            labels_of(model, "the service")
            explain(model, WARMING)
        if TAG in made.tasks:
            tag(model, WARMING)
        return made

    @property
    def tasks(self) -> tuple[str, ...]:
        """What the model can do. Literal words decide on documents alone, whatever heads there are."""
        return tuple(task for task in self.model.labels if task != TAG or self.model.literal is None)

    def edited(self, edit: Edit) -> EditedModel:
        """The view that an edit makes."""
        with self._making:
            if edit not in self._edits:
                self._edits[edit] = edited(self.model, edit)
            self._edits.move_to_end(edit)
            while len(self._edits) > KEPT_EDITS:
                self._edits.popitem(last=False)
            return self._edits[edit]

    def lexicon(self) -> "Table":
        """The table of words; refused for models that are none."""
        document_table(self.model)
        with self._making:
            return self._table

    @cached_property
    def _table(self) -> "Table":
        made = model_table(self.model, attached_frequencies(self.folder))
        return Table(made.labels, made.rows)

    @cached_property
    def described(self) -> dict[str, Any]:
        """What clients see of it."""
        model, labels = self.model, self.model.labels
        head = model.head(CLASSIFY) if CLASSIFY in labels else None
        forbidden = attached_lexicon(self.folder)
        return {
            "name": self.name,
            "sha256": self.sha256,
            "tasks": list(self.tasks),
            "labels": list(labels.get(CLASSIFY, ())),
            "tags": list(labels.get(TAG, ())),
            "max_length": model.max_length,
            "words_are_literal": model.literal is not None,
            "has_context": model.context is not None,
            "is_calibrated": model.calibration is not None,
            "temperature": model.temperature,
            "bias": _centered_bias(head, labels[CLASSIFY]) if isinstance(head, TableHead) else None,
            "suppressed": list(forbidden.forbid) if forbidden else [],
            **_of_run(self.folder),
        }


def _of_run(folder: Path) -> dict[str, Any]:
    """What is known of the run that trained the model, if its folder lies in one that measured it."""
    unknown = {"about": "", "address": folder.name, "accuracies": [], "measures": []}
    run = find_run(folder.resolve())
    if run is None:
        return unknown
    try:
        found = about(Run.open(run))
    except LexicalSAEError as error:
        logger.warning("%s: nothing is shown of the run that trained it: %s", folder, error)
        return unknown
    return {key: found[key] for key in unknown}


def _centered_bias(head: TableHead, labels: tuple[str, ...]) -> dict[str, float]:
    bias = head.class_bias.detach().double()
    return dict(zip(labels, (bias - bias.mean()).tolist(), strict=True))


class Table(NamedTuple):
    """The words of a model with their weights, the largest first."""

    labels: tuple[str, ...]
    rows: tuple[WordRow, ...]

    def page(self, label: str | None, search: str, offset: int, top: int) -> dict[str, Any]:
        """Some of its rows: those whose word contains `search`, the strongest for `label` first."""
        wanted = search.casefold()
        found = [row for row in self.rows if wanted in row.word.casefold()] if wanted else list(self.rows)
        if label is not None:
            place = label_index(self.labels, label, "label")
            found.sort(key=lambda row: -row.weights[place] if row.weights else 0.0)
        words = [
            {"word": row.word, "weights": row.weights, "texts": row.texts, "suppressed": row.suppress}
            for row in found[offset : offset + top]
        ]
        return {"labels": self.labels, "total": len(found), "words": words}
