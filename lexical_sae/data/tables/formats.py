"""Which file formats there are, and how each becomes a table."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from io import TextIOBase
from itertools import chain, repeat, zip_longest
from pathlib import Path
from typing import Any

from lexical_sae.data.tables.csv_rows import csv_table, tsv_table, with_columns
from lexical_sae.data.tables.decoding import UNPACKERS, ZIP, DataFile, data_file, lines_of
from lexical_sae.data.tables.frames import frame_table
from lexical_sae.data.tables.json_rows import json_table, jsonl_table
from lexical_sae.data.tables.table import Table, list_places, quoted, refuse_repeated
from lexical_sae.utils.errors import DataError, MissingPackageError

Columns = Sequence[str] | None


def _csv(file: DataFile, columns: Columns) -> Table:
    return file.parsed(with_columns(csv_table, columns), newline="")


def _tsv(file: DataFile, columns: Columns) -> Table:
    return file.parsed(with_columns(tsv_table, columns), newline="\n")


def _jsonl(file: DataFile, _: Columns) -> Table:
    return file.parsed(jsonl_table, newline="\n")


def _json(file: DataFile, _: Columns) -> Table:
    return file.parsed(json_table, newline="\n")


def _lines(file: DataFile, _: Columns) -> Table:
    return file.parsed(_text_lines, newline="\n")


def _text_lines(source: str, stream: TextIOBase) -> Table:
    """A text per line; blank lines are skipped."""
    lines = [(number, line) for number, line in enumerate(lines_of(stream), start=1) if line.strip()]
    if not lines:
        raise DataError(f"{source} is empty; write one text per line")
    return Table(source, {"text": [line for _, line in lines]}, [number for number, _ in lines])


def _parquet(file: DataFile, _: Columns) -> Table:
    return _arrow_table(file, [_package(file, "pyarrow.parquet", "parquet").read_table])


def _arrow(file: DataFile, _: Columns) -> Table:
    """Feather and Arrow files; `datasets` writes the stream form under the same ending."""
    feather, ipc = (_package(file, f"pyarrow.{name}", "parquet") for name in ("feather", "ipc"))
    return _arrow_table(file, [feather.read_table, lambda stream: ipc.open_stream(stream).read_all()])


def _arrow_table(file: DataFile, readers: Sequence[Callable[[Any], Any]]) -> Table:
    arrow = _package(file, "pyarrow", "parquet")
    problem: Exception | None = None
    for read in readers:
        try:
            table = frame_table(file.source, read(arrow.BufferReader(file.bytes())))
        except (arrow.ArrowException, OSError) as error:
            problem = problem or error
            continue
        assert table is not None
        return table
    raise DataError(f"{file.source} is not a complete {file.ending[1:]} file ({problem}); write it again")


def _excel(file: DataFile, columns: Columns) -> Table:
    """The first sheet with rows; line numbers are those that the spreadsheet shows."""
    openpyxl = _package(file, "openpyxl", "excel")
    try:
        with file.open() as stream:
            book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
            sheets = {sheet.title: list(sheet.iter_rows(values_only=True)) for sheet in book.worksheets}
            book.close()
    except (KeyError, ValueError, openpyxl.utils.exceptions.InvalidFileException) as error:
        raise DataError(f"{file.source} is not a complete Excel workbook ({error}); save it again") from error
    title, rows = next(((title, rows) for title, rows in sheets.items() if any(map(any, rows))), ("", []))
    filled = [(number, list(row)) for number, row in enumerate(rows, start=1) if any(cell is not None for cell in row)]
    if not filled:
        raise DataError(f"{file.source} is empty; it needs a header row and rows")
    if columns is None:
        head = filled.pop(0)[1]
        while head and head[-1] is None:
            head.pop()
        columns = [str(name or "").strip() or f"column {i}" for i, name in enumerate(head, start=1)]
    refuse_repeated(file.source, columns)
    if beyond := [f"{file.source}:{number}" for number, row in filled if any(row[len(columns) :])]:
        raise DataError(
            f"cells to the right of the {len(columns)} columns ({quoted(columns)}) at {list_places(beyond)}; "
            "give each column a name in the header row, or clear them"
        )
    by_place = zip_longest(*(row for _, row in filled)) if filled else ()
    cells = dict(zip(columns, chain(by_place, repeat([None] * len(filled))), strict=False))
    notes = (f"read sheet {title!r}, the first of {len(sheets)} with rows",) if len(sheets) > 1 else ()
    return Table(file.source, cells, [number for number, _ in filled], notes=notes)


def _package(file: DataFile, name: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingPackageError(
            f"{file.source}: reading {file.ending} needs {name.partition('.')[0]}; "
            f"install it with: pip install 'lexical-sae[{extra}]'"
        ) from error


FORMATS: Mapping[str, Callable[[DataFile, Columns], Table]] = {
    ".csv": _csv,
    ".tsv": _tsv,
    ".tab": _tsv,
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".json": _json,
    ".parquet": _parquet,
    ".feather": _arrow,
    ".arrow": _arrow,
    ".xlsx": _excel,
}
"""The reader of each ending."""
PACKED = ("", *UNPACKERS, ZIP)
"""Endings that may follow."""
ENDINGS = tuple(ending + packer for ending in FORMATS for packer in PACKED) + (ZIP,)
"""All endings of data files."""
LINES = ".txt"
"""A text per line and no labels: read where it is named, and never looked for in a folder or an archive."""


def read_table(path: Path, columns: Sequence[str] | None = None) -> Table:
    """The rows of a data file, with the line each came from.

    Args:
        path: The file: one of `FORMATS`, also packed by gzip, bz2, xz or zip; or a text per line (`.txt`).
        columns: Names of the columns of a file that has no header line.
    """
    file = data_file(path, is_data_file)
    if file.ending == LINES:
        return _lines(file, columns)
    if file.ending not in FORMATS:
        raise DataError(
            f"{path}: no known format has the ending {file.ending!r}; use one of {', '.join(FORMATS)} "
            f"(or {', '.join(PACKED[1:])} of one)"
        )
    return FORMATS[file.ending](file, columns)


def is_data_file(name: str) -> bool:
    """Whether a file of this name can be read as a table, packed or not."""
    return name.lower().endswith(ENDINGS)


def stem_of(name: str) -> str:
    """A data file's name without its endings; any other name as it is.

    Example: `reviews.csv.gz` -> "reviews"; `exponent 1.5` -> "exponent 1.5"
    """
    ending = max((ending for ending in ENDINGS if name.lower().endswith(ending)), key=len, default="")
    return name[: len(name) - len(ending)]
