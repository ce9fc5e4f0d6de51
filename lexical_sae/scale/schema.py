"""The columns of a scored table, and what its files say about themselves.

Columns may be added within a version, so a reader asks for those it needs by name; another meaning or type of a column
is another version.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from lexical_sae.utils.errors import SavedFileError
from lexical_sae.utils.part import PartConfig, first_complaint
from lexical_sae.utils.precision import EncoderType

VERSION = 1
ABOUT = b"lexical_sae"
"""Key of the file's metadata under which `About` stands, as JSON."""
FILE_SHIFT = 40
"""Row ids are `file number << 40 | row of the file`: known without counting the rows of the files before."""

Explain = Literal["top", "all", "none"]

WORD = pa.struct(
    [
        pa.field("word", pa.string(), nullable=False),
        pa.field("contribution", pa.float32(), nullable=False),
        pa.field("if_removed", pa.float32()),
        pa.field("start", pa.int32()),
        pa.field("end", pa.int32()),
        pa.field("default", pa.float32()),
        pa.field("context", pa.float32()),
    ]
)
"""A word behind a decision; each field as in `lexical_sae.explanation.WordContribution`."""

_COLUMNS: tuple[tuple[str, pa.DataType, bool, str], ...] = (
    ("row_id", pa.int64(), False, "Number of the file << 40, plus the row in it from 0; ascending in input order."),
    ("source", pa.string(), False, "The file that the row came from."),
    ("source_row", pa.int64(), False, "Line of the row in a text file, or its number in a Parquet file, from 1."),
    ("label", pa.string(), True, "The label that the row was given; null without a label column."),
    ("prediction", pa.string(), False, "The most probable label."),
    ("probability", pa.float32(), False, "Its probability."),
    ("probabilities", pa.list_(pa.float32()), False, "Of every label, in the order of `labels` in the metadata."),
    ("explained", pa.float32(), False, "Logit of the prediction minus the mean of all; the sum of the next parts."),
    ("bias", pa.float32(), False, "What is no word's contribution."),
    ("words", pa.list_(WORD), True, "The strongest first; null where nothing was to be explained."),
    ("rest", pa.float32(), True, "Sum of the contributions that `words` does not list."),
    ("num_words", pa.int32(), True, "Active words of the text, listed or not."),
    ("tokens_cut", pa.int32(), False, "Tokens at the end of the text that the model did not read."),
    ("warnings", pa.list_(pa.string()), False, "Kinds of `lexical_sae.inference.unusual`; empty for ordinary texts."),
    ("model", pa.string(), False, "SHA-256 of the saved model."),
)
FIELDS = tuple(
    pa.field(name, kind, nullable=nullable, metadata={"about": about}) for name, kind, nullable, about in _COLUMNS
)
"""The columns of every scored table; kept columns of the input stand after them."""
NAMES = tuple(field.name for field in FIELDS)


class About(PartConfig):
    """What a scored file says about itself."""

    version: int = VERSION
    model: str
    """SHA-256 of the saved model (`lexical_sae.models.persistence`)."""
    labels: tuple[str, ...]
    """In the order of `probabilities`."""
    explain: Explain = "top"
    """Which words are listed."""
    top: int | None = None
    """How many at most; None for all."""
    dtype: EncoderType = "float32"
    """What the encoder computed in; all behind it is in single precision."""
    kept: dict[str, str] = {}
    """Columns of the input that were kept: its name by the name here."""


def kept_name(name: str) -> str:
    """What a kept column is called. Example: "region" -> "region"; "label" -> "original_label" """
    return f"original_{name}" if name in NAMES else name


def scored_schema(about: About, kept: pa.Schema | None = None) -> pa.Schema:
    """The schema of a scored table, with the kept columns of the input under their names of `kept_name`."""
    more = [] if kept is None else [field.with_name(kept_name(field.name)) for field in kept]
    return pa.schema([*FIELDS, *more], metadata={ABOUT: about.model_dump_json().encode()})


def read_about(path: str | Path) -> About:
    """What a scored Parquet file says about itself; a foreign file and another version are refused."""
    try:
        found = (pq.read_schema(path).metadata or {}).get(ABOUT)
    except pa.ArrowException as error:
        raise SavedFileError(f"{path} is not a Parquet file ({error}); give a file that `score` wrote") from error
    if found is None:
        raise SavedFileError(f"{path} was not written by `lexical-sae score`; score its texts first")
    version = json.loads(found).get("version")
    if version != VERSION:
        raise SavedFileError(f"{path} has version {version!r} of the columns, and {VERSION} is read; score it again")
    try:
        return About.model_validate_json(found)
    except ValidationError as error:
        raise SavedFileError(f"{path}: {first_complaint(error)}; score its texts again") from error


@dataclass(frozen=True)
class Places:
    """Where some rows came from."""

    source: str
    ids: pa.Array
    """`row_id`."""
    rows: pa.Array
    """`source_row`."""
    labels: pa.Array | None = None
    """Given labels, as strings; None without a label column."""

    def __len__(self) -> int:
        return len(self.ids)
