"""CSV and TSV, read in blocks: the rows of a block are turned into columns at once, and their lines are kept."""

import csv
import io
import re
import threading
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOBase
from itertools import chain, islice
from typing import NamedTuple

from lexical_sae.data.tables.decoding import lines_of
from lexical_sae.data.tables.table import Table, list_places, quoted, refuse_repeated
from lexical_sae.utils.errors import DataError

BLOCK = 2048
"""Records that are held as lists at a time."""
SEPARATORS = (",", ";", "\t", "|")
LONGEST_FIELD = 2**31 - 1
SNIFFED = 20
"""Lines by which the separator is chosen."""
_SEPARATOR_LINE = re.compile(r'"?sep=(\\t|\t|[^\w\s"])"?[\r\n]*', re.IGNORECASE)
"""The first line that gives Excel the field separator: `sep=;`."""
_LINE_END = re.compile(r"\r\n|\r|\n")
_csv_limit = threading.Lock()


class Block(NamedTuple):
    """Some records, one after another."""

    lines: Sequence[int]
    records: list[list[str]]
    """The fields of each."""
    broken: tuple[int, str] | None = None
    """Line of the record that follows, and why it is none."""


def csv_table(source: str, stream: TextIOBase, columns: Sequence[str] | None = None) -> Table:
    """The rows of CSV text opened with `newline=""`; a quoted field may span lines."""
    return _joined(source, csv_blocks(stream, LONGEST_FIELD), columns)


def tsv_table(source: str, stream: TextIOBase, columns: Sequence[str] | None = None) -> Table:
    """The rows of TSV text opened with `newline="\\n"`.

    Tabs always separate, as in GLUE; a field wholly in quotes is unwrapped, as spreadsheets do.
    """
    return _joined(source, tsv_blocks(stream), columns)


def with_columns(
    parse: Callable[[str, TextIOBase, Sequence[str] | None], Table], columns: Sequence[str] | None
) -> Callable[[str, TextIOBase], Table]:
    """A reader of text whose columns are named, where they are not in its first line."""
    return lambda source, stream: parse(source, stream, columns)


def csv_blocks(stream: TextIOBase, longest_field: int) -> Iterator[Block]:
    """The records of CSV text opened with `newline=""`, the header among them; the line after a broken record is the
    next record's first."""
    head = list(islice(stream, SNIFFED))
    named = _SEPARATOR_LINE.fullmatch(head[0]) if head else None
    with _fields_up_to(longest_field):
        mark = (named[1] if named else _choose_separator(head)).replace("\\t", "\t")
    reader = csv.reader(chain(head[1:] if named else head, stream), delimiter=mark, strict=True)
    first = line = 2 if named else 1
    while True:
        records: list[list[str]] = []
        broken = None
        with _fields_up_to(longest_field):
            try:
                # Into a list that is there already, so that what was read before an error is known.
                records.extend(islice(reader, BLOCK))
            except csv.Error as error:
                broken = line + sum(map(_lines_in, records)), str(error)
        if not records and broken is None:
            return
        after = reader.line_num + first
        yield Block(_numbers(records, line, after), records, broken)
        line = after


@contextmanager
def _fields_up_to(length: int) -> Iterator[None]:
    """The limit on field sizes is global to the csv module: set it for a while, and put it back."""
    with _csv_limit:
        old = csv.field_size_limit(length)
        try:
            yield
        finally:
            csv.field_size_limit(old)


def _numbers(records: list[list[str]], line: int, after: int) -> Sequence[int]:
    """The first line of each record."""
    if after - line == len(records):
        return range(line, after)
    found = array("q")
    for record in records:
        found.append(line)
        line += _lines_in(record)
    return found


def _lines_in(record: list[str]) -> int:
    return 1 + sum(len(_LINE_END.findall(field)) for field in record if "\n" in field or "\r" in field)


def _choose_separator(head: list[str]) -> str:
    """The separator that gives the header and the lines below equally many fields, more than one.

    Where none does, it is the first of `,` `;` tab `|` that the header holds.
    Example: ["text;label, as given", "a;1"] -> ";"
    """
    present = [mark for mark in SEPARATORS if head and mark in head[0]]
    return next((mark for mark in present if _is_even(head, mark)), (present or [","])[0])


def _is_even(head: list[str], mark: str) -> bool:
    widths = [len(fields) for fields in csv.reader(io.StringIO("".join(head), newline=""), delimiter=mark) if fields]
    # The last record of many may go on below.
    return len(set(widths[:-1] if len(head) == SNIFFED else widths)) == 1


def tsv_blocks(stream: TextIOBase) -> Iterator[Block]:
    """The records of TSV text opened with `newline="\\n"`, the header among them."""
    lines, first = lines_of(stream), 1
    while block := list(islice(lines, BLOCK)):
        skipped = int(first == 1 and _SEPARATOR_LINE.fullmatch(block[0]) is not None)
        records = [[_unwrap(field) for field in line.split("\t")] for line in block[skipped:]]
        yield Block(range(first + skipped, first + len(block)), records)
        first += len(block)


def _unwrap(field: str) -> str:
    if len(field) >= 2 and field[0] == field[-1] == '"' and '"' not in field[1:-1].replace('""', ""):
        return field[1:-1].replace('""', '"')
    return field


def header_names(record: Sequence[str]) -> list[str]:
    """The names in a header line; columns without one are numbered."""
    return [name.strip() or f"column {i}" for i, name in enumerate(record, start=1)]


def _joined(source: str, blocks: Iterator[Block], names: Sequence[str] | None) -> Table:
    """The columns of all blocks; records without any field are left out, and a row of another width is an error."""
    numbers = array("q")
    ragged: list[str] = []
    values: list[list[str]] = [] if names is None else [[] for _ in names]
    for lines, records, broken in blocks:
        if broken is not None:
            raise DataError(
                f"{source}:{broken[0]} breaks the CSV rules ({broken[1]}); put quotes around a field that holds a "
                f'quote, comma or line break, and double the quotes inside it ("")'
            )
        if not all(map(any, records)):
            filled = [(line, fields) for line, fields in zip(lines, records, strict=True) if any(fields)]
            lines, records = [line for line, _ in filled], [fields for _, fields in filled]
        if names is None and records:
            names = header_names(records[0])
            lines, records = lines[1:], records[1:]
            values = [[] for _ in names]
        if not records:
            continue
        assert names is not None
        if set(map(len, records)) == {len(names)}:
            numbers.extend(lines)
            for column, more in zip(values, zip(*records, strict=True), strict=True):
                column.extend(more)
        else:
            places = zip(lines, records, strict=True)
            ragged += [f"{source}:{line} ({len(row)} fields)" for line, row in places if len(row) != len(names)]
    if names is None:
        raise DataError(f"{source} is empty; it needs a header line and rows")
    refuse_repeated(source, names)
    if ragged:
        raise DataError(
            f"every row needs {len(names)} fields ({quoted(names)}), not so at {list_places(ragged)}; "
            f"put quotes around a text that holds the separator"
        )
    columns = {}
    for name, column in zip(names, values, strict=True):
        columns[name] = tuple(column)
        column.clear()
    return Table(source, columns, numbers)
