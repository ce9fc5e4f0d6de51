"""Which files are read, and which of their columns."""

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from lexical_sae.data.tables.columns import LABEL_NAMES, choose_text_column
from lexical_sae.data.tables.decoding import UNPACKERS, ZIP, DataFile, data_file
from lexical_sae.data.tables.streams import STREAMED, stream_rows
from lexical_sae.data.tables.table import quoted
from lexical_sae.scale.arrow_files import ARROW_FILES
from lexical_sae.utils.errors import DataError
from lexical_sae.utils.part import PartConfig
from lexical_sae.utils.suggest import did_you_mean

ENDINGS = (
    *ARROW_FILES,
    *(ending + packer for ending in STREAMED for packer in ("", *UNPACKERS, ZIP)),
)
ALL = "all"
"""Keeps every column."""


class Input(PartConfig):
    """One file to read."""

    path: str
    number: int
    """Its place among the files, in their order."""
    size: int
    """In bytes, so that a resumed run notices another file of the same name."""

    @property
    def file(self) -> DataFile:
        return data_file(Path(self.path), is_streamed)


class Columns(PartConfig):
    """What is read of each row."""

    text: str
    label: str | None = None
    kept: Annotated[tuple[str, ...], Field(description="Columns of the input that go into the table.")] = ()


def is_streamed(name: str) -> bool:
    """Whether a file of this name can be read a part at a time."""
    return name.lower().endswith(ENDINGS)


def find_inputs(places: Sequence[str]) -> tuple[Input, ...]:
    """The files of paths, folders and globs, each once, in the order given and by name within it."""
    found: dict[Path, None] = {}
    for place in places:
        found |= dict.fromkeys(_files(place))
    return tuple(Input(path=str(path), number=i, size=path.stat().st_size) for i, path in enumerate(found))


def _files(place: str) -> list[Path]:
    path = Path(place).expanduser()
    if path.is_file():
        if not is_streamed(path.name):
            raise DataError(f"{path}: such a file cannot be read a part at a time; use one of {', '.join(ENDINGS)}")
        return [path]
    candidates = path.rglob("*") if path.is_dir() else map(Path, glob.glob(str(path), recursive=True))
    files = sorted(each for each in candidates if each.is_file() and is_streamed(each.name))
    if not files:
        what = "holds no file" if path.is_dir() else "is no file, and as a pattern finds none"
        raise DataError(f"{place} {what} that ends in {', '.join(STREAMED)}, {', '.join(ARROW_FILES)} (or packed)")
    return files


def choose_columns(
    first: Input, text: str | None, label: str | None, kept: Sequence[str]
) -> tuple[Columns, tuple[str, ...]]:
    """The columns to read, as named or by the names that the first file has, and a note on each that was inferred."""
    names = column_names(first)
    for name in (text, label, *(each for each in kept if each != ALL)):
        if name is not None and name not in names:
            raise DataError(
                f"{first.path} has no column {name!r}{did_you_mean(name, names)} Columns seen: {quoted(names)}"
            )
    chosen = text or choose_text_column(names, first.path)
    by_name = {name.casefold(): name for name in reversed(names) if name != chosen}
    guess = label or next((by_name[name] for name in LABEL_NAMES if name in by_name), None)
    notes = [note] if (note := _encoding_note(first)) else []
    notes += [f"guessed: text column {chosen!r}"] if text is None and len(names) > 1 else []
    notes += [f"guessed: label column {guess!r}"] if label is None and guess is not None else []
    wanted = [name for name in names if name != chosen] if ALL in kept else list(dict.fromkeys(kept))
    return Columns(text=chosen, label=guess, kept=tuple(wanted)), tuple(notes)


def _encoding_note(read: Input) -> str:
    return "" if read.file.ending in ARROW_FILES else read.file.sampled_encoding()[1]


def column_names(read: Input) -> list[str]:
    """The columns of a file; of JSON lines those of its first rows."""
    file = read.file
    if file.ending in ARROW_FILES:
        return ARROW_FILES[file.ending](read.path).names
    return list(next((rows.columns for rows in stream_rows(file) if rows.columns), ()))
