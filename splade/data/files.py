"""Anyone's data: CSV, TSV, JSON lines, DataFrames and lists of (text, label); CoNLL columns for tagging."""

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from splade.data.carve import Sizes, carve
from splade.data.conll import read_conll, tagged_source
from splade.data.examples import Source, TaggedDataset, TextDataset, TextSplit
from splade.data.rows import choose_columns, class_notes, labelled_rows, sorted_label_names, text_split
from splade.data.table import SUFFIXES, Table, read_table

logger = logging.getLogger(__name__)

SPLIT_STEMS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test",),
}
TEXT_ENDINGS = tuple(ending + gz for ending in SUFFIXES for gz in ("", ".gz"))
TAGGED_ENDINGS = (".txt", ".conll", ".iob", ".bio", ".tsv")


def read_text_dataset(
    train: Any,
    *,
    validation: Any = None,
    test: Any = None,
    text_column: str | None = None,
    label_column: str | None = None,
    skip_bad_rows: bool = False,
    name: str | None = None,
    sizes: Sizes | None = None,
) -> TextDataset:
    """A classification data set from your own rows.

    `train`, `validation` and `test` are each a path (`.csv`, `.tsv`, `.jsonl`, also `.gz`), a pandas DataFrame, or an
    iterable of (text, label); a folder given as `train` holds files named after the splits. What is not given is
    carved from train. Columns that are not named are guessed; the guesses are in `notes`.
    """
    if isinstance(train, str | Path) and Path(train).is_dir():
        found = split_files(Path(train), TEXT_ENDINGS)
        train, validation, test = found["train"], validation or found["validation"], test or found["test"]
        name = name or found["folder"].name
    given = [("train", train), ("validation", validation), ("test", test)]
    tables = {role: as_table(rows, role) for role, rows in given if rows is not None}
    text, label, notes = choose_columns(tables["train"], text_column, label_column)
    usable = {role: labelled_rows(t, text, label, skip_bad_rows=skip_bad_rows) for role, t in tables.items()}
    names = sorted_label_names([label for rows in usable.values() for label in rows.labels])
    _check_classes(tables["train"], usable["train"].labels)
    ids = {label: i for i, label in enumerate(names)}
    splits: dict[str, TextSplit] = {role: text_split(tables[role], rows, ids) for role, rows in usable.items()}
    test_labels = splits["test"].labels if "test" in splits else None
    source = Source(
        names,
        splits["train"],
        splits.get("validation"),
        splits.get("test"),
        notes=(
            *notes,
            *(note for rows in usable.values() for note in rows.notes),
            *class_notes(names, splits["train"].labels, test_labels),
        ),
    )
    carved = carve(source, sizes or Sizes())
    for note in carved.notes:
        logger.info("%s: %s", tables["train"].source, note)
    name = name or Path(tables["train"].source).name
    return TextDataset(name, names, carved.train, carved.validation, carved.test, carved.notes)


def _check_classes(table: Table, labels: tuple[str, ...]) -> None:
    distinct = set(labels)
    if len(distinct) == 1:
        raise ValueError(f"{table.source} has only one class, {labels[0]!r}; a classifier needs at least two")
    if len(labels) >= 20 and len(distinct) > len(labels) // 2:
        raise ValueError(
            f"{table.source} has {len(distinct)} different labels in {len(labels)} rows: that looks like a number or "
            f"an id, not a class; name the right column with label_column="
        )


def as_table(rows: Any, role: str = "rows") -> Table:
    """The rows of a path, a DataFrame or an iterable of (text, label), with their places."""
    if isinstance(rows, str | Path):
        return read_table(_existing(Path(rows)))
    if hasattr(rows, "columns") and hasattr(rows, "to_dict"):
        if len({str(name) for name in rows.columns}) != len(rows.columns):
            raise ValueError("the DataFrame has two columns of one name; rename one")
        columns = {str(name): rows[name].tolist() for name in rows.columns}
        return Table("DataFrame", columns, range(len(rows)), is_file=False)
    if not isinstance(rows, Iterable) or isinstance(rows, bytes | dict):
        raise TypeError(f"{role} is {type(rows).__name__}; give a path, a DataFrame, or a list of (text, label)")
    pairs = list(rows)
    if not pairs:
        raise ValueError(f"{role} is an empty list; give at least two (text, label) pairs")
    for number, pair in enumerate(pairs):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(f"{role} row {number} is {pair!r:.60}; give a (text, label) pair")
    columns = {"text": [text for text, _ in pairs], "label": [label for _, label in pairs]}
    return Table(f"{role} list", columns, range(len(pairs)), is_file=False)


def read_tagged_dataset(
    train: str | Path,
    *,
    validation: str | Path | None = None,
    test: str | Path | None = None,
    name: str | None = None,
    sizes: Sizes | None = None,
) -> TaggedDataset:
    """A tagging data set from your own CoNLL-style files: one word per line, first column the word, last the tag.

    A folder given as `train` holds files named after the splits; a split that is not given is carved from train.
    """
    if Path(train).is_dir():
        found = split_files(Path(train), TAGGED_ENDINGS)
        train, validation, test = found["train"], validation or found["validation"], test or found["test"]
        name = name or found["folder"].name
    given = [("train", train), ("validation", validation), ("test", test)]
    tables = {role: read_conll(_existing(Path(path))) for role, path in given if path is not None}
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
            raise ValueError(f"{folder} has {' and '.join(m.name for m in matches)} for {role}; keep one of them")
        found[role] = matches[0] if matches else None
    if found["train"] is None:
        held = ", ".join(sorted(p.name for p in folder.iterdir())[:20]) or "nothing"
        raise FileNotFoundError(f"{folder} has no train file (train{' or train'.join(endings)}); it holds {held}")
    return found


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}; check the path (working folder: {Path.cwd()})")
    return path
