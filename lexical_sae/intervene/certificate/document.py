"""The content of a certificate, and its JSON file."""

import json
from pathlib import Path
from typing import Literal

from pydantic import AliasChoices, Field, ValidationError, model_validator

from lexical_sae.intervene.lexicon import Lexicon
from lexical_sae.models.persistence import digest
from lexical_sae.utils.errors import SavedFileError
from lexical_sae.utils.files import write_text
from lexical_sae.utils.part import PartConfig, first_complaint

NOT_CLAIMED = (
    "Removed words cannot act through a dimension. The encoder still reads them in the text, and other words may carry "
    "the same information; that is leakage, which only level 3 measures."
)


class RemovedDimension(PartConfig):
    """A suppressed dimension."""

    id: int = Field(ge=0)
    name: str
    was_open: bool
    """False if it was already suppressed in the original."""


class ChangedRow(PartConfig):
    """A word whose weights were changed in the table of a model with literal words."""

    id: int = Field(ge=0)
    name: str
    before: tuple[float, ...]
    """Its weight for each class in the original, in logits; for an added word, as the original reads it."""
    after: tuple[float, ...]
    was_open: bool
    """Whether the original had a weight for it."""


class Construction(PartConfig):
    """Level 1: zero by construction, rows as given, and nothing else changed."""

    removed: tuple[RemovedDimension, ...] = ()
    changed: tuple[ChangedRow, ...] = ()
    added: tuple[str, ...] = ()
    """Words unseen by the original that have a dimension in the edited model, after all others."""
    closed_before_sha256: str
    """Of the original's suppression mask; restoring the removed dimensions gives it."""
    input_embedding_sha256: str
    other_tensors_sha256: str
    """Of every tensor of the original but that mask; undoing the listed changes gives them."""

    @model_validator(mode="after")
    def _something_was_done(self) -> "Construction":
        if not (self.removed or self.changed or self.added):
            raise SavedFileError("no dimension was removed, changed or added")
        return self

    @property
    def opened_before(self) -> list[int]:
        """The dimensions that the edit suppressed."""
        return [dimension.id for dimension in self.removed if dimension.was_open]

    @property
    def touched(self) -> list[int]:
        """The dimensions through which the edit changes decisions."""
        return sorted({*self.opened_before, *(row.id for row in self.changed)})


class DataSource(PartConfig):
    """Which rows were read, by hash; the rows themselves are not in the certificate."""

    name: str
    """Name of a data set, or of a file without its folder."""
    texts: int
    labelled: bool
    rows_sha256: str
    """Of the texts and labels in their order."""
    file_sha256: str | None = None
    """Of the file, where one was read."""


class WordEffect(PartConfig):
    """The contribution of one removed or changed dimension, over the decisions where it was active."""

    name: str
    decisions: int
    mean_activation: float = Field(validation_alias=AliasChoices("mean_activation", "mean_strength"))
    """Certificates of earlier versions call it `mean_strength`."""
    mean_contribution: float
    """Class-centred, to the predicted class."""
    mean_contribution_after: float = 0.0
    """The same in the edited model, over the decisions where it is active there."""


class Effect(PartConfig):
    """Level 2: both models on the same texts. Effects are changes of the class-centred logit of the first decision."""

    data: DataSource
    head: str
    decisions: int
    """Texts, or words for a head that tags."""
    touched: int
    """Decisions in which a removed or changed dimension was active before or is now."""
    flipped: int
    """Decisions whose class changed."""
    region_changed: int
    """Decisions in which a hidden unit switched, so that contributions need not predict the effect."""
    mean_effect: float
    """Mean size of the effect over touched decisions."""
    largest_effect: float
    largest_surprise: float
    """Largest difference between an effect and the contributions that were removed."""
    strongest_after: float
    """Largest activation of a removed dimension in the edited model: zero."""
    accuracy_before: float | None = None
    accuracy_after: float | None = None
    words: tuple[WordEffect, ...]


class LeakageScore(PartConfig):
    """How well one probe reads the concept from one representation, on rows that it was not fitted on."""

    representation: str
    """Input of the probe: the words before, those left after a removal, after random removals, the raw text."""
    probe: str
    accuracy: float
    low: float
    high: float
    """95 % confidence limits."""


class Leakage(PartConfig):
    """Level 3: how well a concept can still be read."""

    concept: str
    data: DataSource
    majority: float
    """Accuracy of the majority value."""
    scores: tuple[LeakageScore, ...] = Field(min_length=1)


class Certificate(PartConfig):
    """The removed or changed words of a model, and the effect."""

    format_version: Literal[1] = 1
    written_by: str
    """Version of this package."""
    lexicon: Lexicon | None = None
    """The lexicon attached to the edited model, if any."""
    original_files: dict[str, str]
    """SHA-256 of every file of the original model's folder."""
    edited_files: dict[str, str]
    construction: Construction
    effect: Effect | None = None
    leakage: Leakage | None = None
    not_claimed: str = NOT_CLAIMED
    own_sha256: str = ""
    """Of the rest of this file."""


def write_certificate(certificate: Certificate, path: str | Path) -> Path:
    """The path of the JSON file, written atomically; levels that were not established are absent."""
    target = Path(path).expanduser()
    body = certificate.model_copy(update={"own_sha256": ""}).model_dump(mode="json", exclude_none=True)
    body["own_sha256"] = digest(body)
    return write_text(target, json.dumps(body, indent=2, ensure_ascii=False) + "\n")


def read_certificate(path: str | Path) -> Certificate:
    """The certificate in a file.

    Raises:
        ValueError: It cannot be read, or was changed after it was written.
    """
    source = Path(path).expanduser()
    try:
        raw = json.loads(source.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SavedFileError(f"there is no certificate {source}") from error
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise SavedFileError(f"{source} is not a certificate: it cannot be read as JSON ({error})") from error
    try:
        certificate = Certificate.model_validate(raw)
    except ValidationError as error:
        raise SavedFileError(f"{source} is not a certificate for this version: {first_complaint(error)}") from error
    if digest(raw) != certificate.own_sha256:
        raise SavedFileError(f"{source} was changed after it was written (SHA-256 differs); get the certificate again")
    return certificate
