"""What a certificate says, and its JSON file."""

import json
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, model_validator

from splade.files import write_text
from splade.intervene.lexicon import Lexicon
from splade.models.persistence import digest
from splade.part import PartConfig, first_complaint

NOT_CLAIMED = (
    "Removed words have no dimension to speak through. The encoder still reads them in the text, "
    "and other words may carry what they said; that is leakage, and only level 3 says how much."
)


class RemovedDimension(PartConfig):
    """A dimension that is closed."""

    id: int = Field(ge=0)
    name: str
    was_open: bool
    """Whether the original has it open; if not, it could not speak there either."""


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
    """Level 1: zero by construction, rows as they were given, and nothing else touched."""

    removed: tuple[RemovedDimension, ...] = ()
    changed: tuple[ChangedRow, ...] = ()
    added: tuple[str, ...] = ()
    """Words that the original never met and that have a dimension in the edited model, the last ones."""
    closed_before_sha256: str
    """Of the original's flags of closed dimensions: opening the removed ones gives them back."""
    input_embedding_sha256: str
    other_tensors_sha256: str
    """Of every tensor of the original but those flags: undoing what is listed here gives them back."""

    @model_validator(mode="after")
    def _something_was_done(self) -> "Construction":
        if not (self.removed or self.changed or self.added):
            raise ValueError("no dimension was removed, changed or added")
        return self

    @property
    def opened_before(self) -> list[int]:
        """The dimensions that the edit closed."""
        return [dimension.id for dimension in self.removed if dimension.was_open]

    @property
    def touched(self) -> list[int]:
        """The dimensions that the edit changes the decisions of."""
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
    """What one removed or changed dimension did before, in the decisions where it was active."""

    name: str
    decisions: int
    mean_strength: float
    mean_contribution: float
    """Class-centred, for the class that was decided on."""
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
    """Decisions that are another class now."""
    region_changed: int
    """Decisions in which a hidden unit that counts switched, so that contributions need not predict the effect."""
    mean_effect: float
    """Mean size of the effect over touched decisions."""
    largest_effect: float
    largest_surprise: float
    """Greatest distance between an effect and what these words contributed before and no longer contribute."""
    strongest_after: float
    """Greatest strength of a removed dimension in the edited model: zero."""
    accuracy_before: float | None = None
    accuracy_after: float | None = None
    words: tuple[WordEffect, ...]


class LeakageScore(PartConfig):
    """How well one probe reads the concept from one representation, on rows that it was not fitted on."""

    representation: str
    """What the probe reads: the words before, those left after, after random removals, the raw text."""
    probe: str
    accuracy: float
    low: float
    high: float
    """Ends of the 95 % interval."""


class Leakage(PartConfig):
    """Level 3: what remains readable of a concept. Filled by whoever measures it."""

    concept: str
    data: DataSource
    majority: float
    """Accuracy of always naming the commonest value."""
    scores: tuple[LeakageScore, ...] = Field(min_length=1)


class Certificate(PartConfig):
    """That words of a model were removed or changed, and what that did."""

    format_version: Literal[1] = 1
    written_by: str
    """Version of this package."""
    lexicon: Lexicon | None = None
    """The words as they were asked for, if the edited model has its lexicon attached."""
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
    """Write the JSON file, whole or not at all; levels that were not established are absent from it."""
    target = Path(path).expanduser()
    body = certificate.model_copy(update={"own_sha256": ""}).model_dump(mode="json", exclude_none=True)
    body["own_sha256"] = digest(body)
    return write_text(target, json.dumps(body, indent=2, ensure_ascii=False) + "\n")


def read_certificate(path: str | Path) -> Certificate:
    """The certificate in a file; one that was changed after it was written is refused."""
    source = Path(path).expanduser()
    try:
        raw = json.loads(source.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ValueError(f"there is no certificate {source}") from error
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{source} is no certificate: it cannot be read as JSON ({error})") from error
    try:
        certificate = Certificate.model_validate(raw)
    except ValidationError as error:
        raise ValueError(f"{source} is no certificate that this version reads: {first_complaint(error)}") from error
    if digest(raw) != certificate.own_sha256:
        raise ValueError(f"{source} was changed after it was written (SHA-256 differs); get the certificate again")
    return certificate
