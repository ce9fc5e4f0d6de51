"""The input in parts: so many rows of one file each, always the same ones, so that a part can be done again.

Row `r` of a file is in its part `r // rows`, bad rows counted. A part never holds rows of two files.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from lexical_sae.data.tables.cell_values import is_missing, label_problem, label_text, text_problem
from lexical_sae.data.tables.streams import BadRow, Rows, is_broken_text, stream_rows
from lexical_sae.data.tables.table import quoted
from lexical_sae.scale.arrow_files import ARROW_FILES
from lexical_sae.scale.inputs import Columns, Input
from lexical_sae.scale.schema import FILE_SHIFT, Places
from lexical_sae.utils.errors import DataError

CONTENT = 1000
"""Characters of a bad row that are kept."""
REJECTED = pa.schema(
    [
        pa.field("row_id", pa.int64(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("source_row", pa.int64(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("content", pa.string(), nullable=False),
    ]
)
"""The side table of rows without a usable text."""


class PartKey(NamedTuple):
    """Which part of which file."""

    file: int
    number: int

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"part-{self.file:05d}-{self.number:06d}.parquet"


@dataclass(frozen=True)
class Part:
    """Some rows to score."""

    key: PartKey
    texts: list[str]
    places: Places
    kept: pa.RecordBatch | None
    rejected: pa.RecordBatch
    read: float
    """Share of its file that was read up to its end."""


@dataclass
class _Waiting:
    """Rows of a part that is not whole yet."""

    numbers: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    texts: list[object] = field(default_factory=list)
    labels: list[object] = field(default_factory=list)
    kept: list[pa.RecordBatch] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)


def parts_of(read: Input, columns: Columns, rows: int) -> Iterator[Part]:
    """The parts of a file, `rows` rows each."""
    number, waiting, share = 0, _Waiting(), 0.0
    for piece, share in _pieces(read, columns):
        for place, own in _cut(piece, rows):
            if place != number:
                yield _part(read, number, waiting, columns, share)
                number, waiting = place, _Waiting()
            _add(waiting, own, columns)
    yield _part(read, number, waiting, columns, 1.0)


Piece = tuple[Rows, pa.RecordBatch | None]
"""Rows, and the columns to keep of them."""


def _pieces(read: Input, columns: Columns) -> Iterator[tuple[Piece, float]]:
    file = read.file
    wanted = [columns.text, *([columns.label] if columns.label else []), *columns.kept]
    if file.ending in ARROW_FILES:
        opened = ARROW_FILES[file.ending](read.path)
        _require(opened.names, wanted, read)
        row = 0
        for batch, share in opened.batches(list(dict.fromkeys(wanted))):
            numbers = range(row, row + len(batch))
            row += len(batch)
            values = {name: batch.column(name).to_pylist() for name in wanted[: 1 + bool(columns.label)]}
            kept = batch.select(list(columns.kept)) if columns.kept else None
            yield (Rows(numbers, range(numbers.start + 1, row + 1), values), kept), share
        return
    with Path(read.path).open("rb") as packed:
        is_first = True
        for found in stream_rows(file, packed):
            if is_first and found.columns:
                _require(list(found.columns), wanted, read)
                is_first = False
            yield (found, _as_strings(found, columns.kept)), packed.tell() / max(1, read.size)


def _require(names: Sequence[str], wanted: Sequence[str], read: Input) -> None:
    if missing := [name for name in wanted if name not in names]:
        raise DataError(
            f"{read.path} has no column {quoted(missing)}, which the first file has; it has {quoted(names)}"
        )


def _as_strings(rows: Rows, kept: Sequence[str]) -> pa.RecordBatch | None:
    """Kept columns of a text file as they are written; what is no string in JSON is JSON."""
    if not kept:
        return None
    columns: list[Sequence[object]] = [rows.columns.get(name, [None] * len(rows)) for name in kept]
    arrays = [pa.array([_written(value) for value in column], pa.string()) for column in columns]
    return pa.RecordBatch.from_arrays(arrays, names=list(kept))


def _written(value: object) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _cut(piece: Piece, rows: int) -> Iterator[tuple[int, Piece]]:
    """The rows of a piece by the part that they belong to."""
    found, kept = piece
    first = [place // rows for place in (*found.numbers[:1], *(bad.row for bad in found.bad[:1]))]
    last = [place // rows for place in (*found.numbers[-1:], *(bad.row for bad in found.bad[-1:]))]
    for number in range(min(first, default=0), max(last, default=-1) + 1):
        here = [i for i, row in enumerate(found.numbers) if row // rows == number]
        span = slice(here[0], here[-1] + 1) if here else slice(0)
        own = Rows(
            found.numbers[span],
            found.lines[span],
            {name: values[span] for name, values in found.columns.items()},
            [bad for bad in found.bad if bad.row // rows == number],
        )
        yield number, (own, None if kept is None else kept.slice(span.start or 0, len(here)))


def _add(waiting: _Waiting, piece: Piece, columns: Columns) -> None:
    rows, kept = piece
    nothing = [None] * len(rows)
    waiting.numbers += rows.numbers
    waiting.lines += rows.lines
    waiting.texts += rows.columns.get(columns.text, nothing)
    waiting.labels += rows.columns.get(columns.label, nothing) if columns.label else nothing
    waiting.bad += rows.bad
    if kept is not None:
        waiting.kept.append(kept)


def _part(read: Input, number: int, waiting: _Waiting, columns: Columns, share: float) -> Part:
    base = read.number << FILE_SHIFT
    problems = [_problem(text) for text in waiting.texts]
    good = [i for i, problem in enumerate(problems) if not problem]
    bad = [
        BadRow(waiting.numbers[i], waiting.lines[i], problem, "" if is_missing(text) else str(text))
        for i, (problem, text) in enumerate(zip(problems, waiting.texts, strict=True))
        if problem
    ]
    rejected = sorted([*bad, *waiting.bad])
    places = Places(
        read.path,
        pa.array([base + waiting.numbers[i] for i in good], pa.int64()),
        pa.array([waiting.lines[i] for i in good], pa.int64()),
        pa.array([_label(waiting.labels[i]) for i in good], pa.string()) if columns.label else None,
    )
    texts = [str(waiting.texts[i]) for i in good]
    return Part(PartKey(read.number, number), texts, places, _kept(waiting, good), _table(read, rejected), share)


def _kept(waiting: _Waiting, good: Sequence[int]) -> pa.RecordBatch | None:
    if not waiting.kept:
        return None
    whole = pa.Table.from_batches(waiting.kept).take(pa.array(good, pa.int64())).combine_chunks()
    arrays = [column.chunk(0) if column.num_chunks else pa.nulls(0, column.type) for column in whole.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=whole.schema)


def _problem(text: object) -> str:
    return text_problem(text) or ("not in the file's encoding" if is_broken_text(str(text)) else "")


def _label(value: object) -> str | None:
    return None if label_problem(value) else label_text(value)


def _table(read: Input, bad: Sequence[BadRow]) -> pa.RecordBatch:
    base = read.number << FILE_SHIFT
    columns: Mapping[str, Sequence[object]] = {
        "row_id": [base + row.row for row in bad],
        "source": [read.path] * len(bad),
        "source_row": [row.line for row in bad],
        "reason": [_written(row.reason) for row in bad],
        "content": [_written(row.content[:CONTENT]) for row in bad],
    }
    return pa.RecordBatch.from_arrays([pa.array(columns[each.name], each.type) for each in REJECTED], schema=REJECTED)
