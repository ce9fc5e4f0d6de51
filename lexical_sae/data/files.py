"""Anyone's data: files, frames, lists of (text, label) or of dicts; CoNLL columns for tagging."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lexical_sae.data.examples import Source, TaggedDataset, TextDataset
from lexical_sae.data.sources.conll import read_conll, tagged_source
from lexical_sae.data.splits import Sizes, carve
from lexical_sae.data.tables.formats import ENDINGS, read_table
from lexical_sae.data.tables.frames import frame_table
from lexical_sae.data.tables.table import Table, quoted, table_of_dicts
from lexical_sae.data.targets import LabelColumns
from lexical_sae.utils.errors import DataError

logger = logging.getLogger(__name__)

SPLIT_STEMS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test",),
}
TAGGED_ENDINGS = (".txt", ".conll", ".iob", ".bio", ".tsv")


def read_text_dataset(
    train: Any,
    *,
    validation: Any = None,
    test: Any = None,
    text_column: str | None = None,
    label_column: str | None = None,
    label_columns: Sequence[str] = (),
    label_separator: str | None = None,
    target: str | None = None,
    skip_bad_rows: bool = False,
    name: str | None = None,
    sizes: Sizes | None = None,
) -> TextDataset:
    """A data set from your own rows: one label per text, any of several, or a number.

    Args:
        train: The path of a data file, a frame (pandas, polars, pyarrow, DuckDB) or Hugging Face data set, an iterable
            of (text, label) or of dicts; or all splits at once: a folder with files named after them, or a dict such as
            `{"train": ..., "test": ...}`.
        validation: Rows of the same kinds; held out from train by default.
        test: Rows of the same kinds; held out from train by default.
        text_column: Column of the texts; inferred by default, as the `notes` record.
        label_column: Column of the labels; inferred by default, as the `notes` record.
        label_columns: Columns of 0 and 1, one per label, where texts have any number of labels.
        label_separator: What stands between the labels of a cell, where texts have any number of labels.
        target: `classes`, `labels` or `number`; by default classes, or labels where either of the last two is given.
        skip_bad_rows: Whether rows without a text or label are left out; otherwise they are an error.
        name: Name of the data set; that of the file or folder by default.
        sizes: Rows to keep of each split, and the seeds.
    """
    if isinstance(train, str | Path) and Path(train).is_dir():
        found = split_files(Path(train), ENDINGS)
        name = name or found["folder"].name
    elif isinstance(train, dict):
        found = _split_rows(train)
    else:
        found = {"train": train}
    train = found["train"]
    validation = found.get("validation") if validation is None else validation
    test = found.get("test") if test is None else test
    given = [("train", train), ("validation", validation), ("test", test)]
    tables = {role: as_table(rows, role) for role, rows in given if rows is not None}
    columns = LabelColumns(label_column, tuple(label_columns), label_separator, target)
    reader = columns.reader(skip_bad_rows=skip_bad_rows)
    found = reader.read(tables, text_column)
    source = Source(
        found.names,
        found.splits["train"],
        found.splits.get("validation"),
        found.splits.get("test"),
        notes=(*(note for table in tables.values() for note in table.notes), *found.notes),
    )
    carved = carve(source, sizes or Sizes())
    notes = (*carved.notes, *reader.notes(found.names, carved.train, carved.test))
    for note in notes:
        logger.info("%s: %s", tables["train"].source, note)
    name = name or Path(tables["train"].source).name
    return TextDataset(name, found.names, carved.train, carved.validation, carved.test, notes, reader.output)


def as_table(rows: Any, role: str = "rows") -> Table:
    """The rows of a path, a frame, a hub data set, or an iterable of (text, label) or dicts, with their places."""
    if isinstance(rows, str | Path):
        return read_table(_existing(Path(rows), role))
    if (table := frame_table(f"{role} {type(rows).__name__}", rows)) is not None:
        return table
    if not isinstance(rows, Iterable) or isinstance(rows, bytes | dict):
        raise TypeError(
            f"{role} is {type(rows).__name__}; give a path, a DataFrame, or a list of (text, label) or of dicts"
        )
    return _table_of_list(list(rows), role)


def _split_rows(rows: dict[str, Any]) -> dict[str, Any]:
    """The rows of each split in a dict whose keys are the names of splits."""
    roles = {stem: role for role, stems in SPLIT_STEMS.items() for stem in stems}
    unknown = [name for name in rows if str(name).casefold() not in roles]
    found = {roles[str(name).casefold()]: held for name, held in rows.items() if name not in unknown}
    if unknown or len(found) != len(rows) or "train" not in found:
        raise DataError(
            f"a dict of rows has one key per split (train, validation, test) and needs train; it has {quoted(rows)}"
        )
    return found


def _table_of_list(rows: list[Any], role: str) -> Table:
    if not rows:
        raise DataError(f"{role} is an empty list; give at least two (text, label) pairs")
    has_keys = isinstance(rows[0], Mapping)
    for number, row in enumerate(rows):
        fits = isinstance(row, Mapping) if has_keys else isinstance(row, tuple | list) and len(row) == 2
        if not fits:
            wanted = "dict like the first row" if has_keys else "(text, label) pair"
            raise DataError(f"{role} row {number} is {row!r:.60}; give a {wanted}")
    if has_keys:
        records = [{str(key): value for key, value in row.items()} for row in rows]
    else:
        records = [{"text": text, "label": label} for text, label in rows]
    return table_of_dicts(f"{role} list", records, range(len(rows)), is_file=False)


def read_tagged_dataset(
    train: str | Path,
    *,
    validation: str | Path | None = None,
    test: str | Path | None = None,
    name: str | None = None,
    sizes: Sizes | None = None,
) -> TaggedDataset:
    """A tagging data set from your own CoNLL-style files: one word per line, first column the word, last the tag.

    Args:
        train: A file, or a folder with files named after the splits.
        validation: A file; held out from train by default.
        test: A file; held out from train by default.
        name: Name of the data set; that of the file or folder by default.
        sizes: Rows to keep of each split, and the seeds.
    """
    if Path(train).is_dir():
        found = split_files(Path(train), TAGGED_ENDINGS)
        train = found["train"]
        validation = found["validation"] if validation is None else validation
        test = found["test"] if test is None else test
        name = name or found["folder"].name
    given = [("train", train), ("validation", validation), ("test", test)]
    tables = {role: read_conll(_existing(Path(path), role)) for role, path in given if path is not None}
    carved_from = tagged_source(tables["train"], tables.get("validation"), tables.get("test"))
    carved = carve(carved_from, sizes or Sizes())
    for note in carved.notes:
        logger.info("%s: %s", train, note)
    names = carved_from.names
    return TaggedDataset(name or Path(train).name, names, carved.train, carved.validation, carved.test, carved.notes)


def split_files(folder: Path, endings: tuple[str, ...]) -> dict[str, Any]:
    """The files of a folder by the split they are named after: `train.csv`, `dev.csv`, `test.csv`."""
    found: dict[str, Any] = {"folder": folder.resolve()}
    for role, stems in SPLIT_STEMS.items():
        matches = [folder / (stem + end) for stem in stems for end in endings if (folder / (stem + end)).is_file()]
        if len(matches) > 1:
            raise DataError(f"{folder} has {' and '.join(m.name for m in matches)} for {role}; keep one of them")
        found[role] = matches[0] if matches else None
    if found["train"] is None:
        held = ", ".join(sorted(p.name for p in folder.iterdir())[:20]) or "nothing"
        raise FileNotFoundError(f"{folder} has no train file (train{' or train'.join(endings)}); it holds {held}")
    return found


def _existing(path: Path, role: str) -> Path:
    if path.is_dir():
        raise FileNotFoundError(f"{path} is a folder; give a file for {role}")
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}; check the path (working folder: {Path.cwd()})")
    return path
