"""Rows of a text file a block at a time, in constant memory: what cannot be read becomes a bad row, not an error.

The same formats as `tables.formats` reads whole; Parquet and Arrow files are the business of who has pyarrow.
"""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOBase
from itertools import islice
from typing import IO, Any, NamedTuple

from lexical_sae.data.tables.csv_rows import BLOCK, Block, csv_blocks, header_names, tsv_blocks
from lexical_sae.data.tables.decoding import DataFile, lines_of
from lexical_sae.data.tables.json_rows import json_object
from lexical_sae.data.tables.table import refuse_repeated
from lexical_sae.utils.errors import DataError

LONGEST_FIELD = 2**24
"""Characters of a CSV field beyond which its row is bad: an unclosed quote would swallow the rest of the file."""


class BadRow(NamedTuple):
    """A row that cannot be used."""

    row: int
    """Its number in the file, from 0, among all rows."""
    line: int
    reason: str
    content: str
    """What was read of it."""


@dataclass(frozen=True)
class Rows:
    """Some rows of a file."""

    numbers: Sequence[int]
    """Place of each among all rows of the file, from 0, bad ones included."""
    lines: Sequence[int]
    columns: Mapping[str, Sequence[object]]
    bad: Sequence[BadRow] = ()

    def __len__(self) -> int:
        return len(self.numbers)


def stream_rows(file: DataFile, packed: IO[bytes] | None = None) -> Iterator[Rows]:
    """The rows of a CSV, TSV or JSON-lines file, a few thousand at a time.

    Args:
        file: The file, packed or not.
        packed: Its own bytes, where the caller has them open to see how far they are read.
    """
    make, newline = STREAMED[file.ending]
    encoding, _ = file.sampled_encoding()
    with file.open(packed) as stream, _text(stream, encoding, newline) as lines:
        yield from make(file.source, lines)


@contextmanager
def _text(stream: Any, encoding: str, newline: str) -> Iterator[TextIOBase]:
    # Broken bytes become half surrogates, so that only their rows are bad.
    text = io.TextIOWrapper(stream, encoding=encoding, errors="surrogateescape", newline=newline)
    try:
        yield text
    finally:
        text.detach()


def _from_csv(source: str, stream: TextIOBase) -> Iterator[Rows]:
    return _delimited(source, csv_blocks(stream, LONGEST_FIELD))


def _from_tsv(source: str, stream: TextIOBase) -> Iterator[Rows]:
    return _delimited(source, tsv_blocks(stream))


def _delimited(source: str, blocks: Iterator[Block]) -> Iterator[Rows]:
    names: list[str] | None = None
    row = 0
    for lines, records, broken in blocks:
        found = [(line, fields) for line, fields in zip(lines, records, strict=True) if any(fields)]
        if names is None and found:
            names = header_names(found.pop(0)[1])
            refuse_repeated(source, names)
        width = len(names or ())
        good = [(row + i, line, fields) for i, (line, fields) in enumerate(found) if len(fields) == width]
        bad = [
            BadRow(row + i, line, f"{len(fields)} fields, not {width}", "\t".join(fields))
            for i, (line, fields) in enumerate(found)
            if len(fields) != width
        ]
        row += len(found)
        if broken is not None:
            if names is None:
                raise DataError(f"{source}:{broken[0]}: the header line breaks the CSV rules ({broken[1]}); mend it")
            bad.append(BadRow(row, broken[0], f"breaks the CSV rules: {broken[1]}", ""))
            row += 1
        numbers, at, fields = zip(*good, strict=True) if good else ((), (), ())
        by_name = zip(*fields, strict=True) if good else [()] * width
        yield Rows(numbers, at, dict(zip(names or (), by_name, strict=True)), bad)


def _from_json_lines(source: str, stream: TextIOBase) -> Iterator[Rows]:
    lines = ((number, line) for number, line in enumerate(lines_of(stream), start=1) if line.strip())
    row = 0
    while block := list(islice(lines, BLOCK)):
        if row == 0 and block[0][1].lstrip().startswith("["):
            raise DataError(f"{source} is one array, which is read whole; write one JSON object per line")
        kept: list[tuple[int, int, Mapping[str, object]]] = []
        bad: list[BadRow] = []
        for number, (line, text) in enumerate(block, start=row):
            try:
                kept.append((number, line, json_object("the line", text, "write {...} on every line")))
            except DataError as error:
                bad.append(BadRow(number, line, str(error), text))
        row += len(block)
        names = dict.fromkeys(name for _, _, record in kept for name in record)
        columns = {name: [record.get(name) for _, _, record in kept] for name in names}
        yield Rows([number for number, _, _ in kept], [line for _, line, _ in kept], columns, bad)


STREAMED: Mapping[str, tuple[Callable[[str, TextIOBase], Iterator[Rows]], str]] = {
    ".csv": (_from_csv, ""),
    ".tsv": (_from_tsv, "\n"),
    ".tab": (_from_tsv, "\n"),
    ".jsonl": (_from_json_lines, "\n"),
    ".ndjson": (_from_json_lines, "\n"),
    ".json": (_from_json_lines, "\n"),
}
"""By ending: what makes rows of the text, and what ends its lines."""


def is_broken_text(value: str) -> bool:
    """Whether a cell holds bytes that are no character of the file's encoding."""
    return not value.isascii() and any("\udc80" <= character <= "\udcff" for character in value)
