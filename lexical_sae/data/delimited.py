"""CSV and TSV, read in blocks: the rows of a block are turned into columns at once, and their lines are kept."""

import csv
import io
import re
import threading
from array import array
from collections.abc import Callable, Iterator, Sequence
from io import TextIOBase
from itertools import chain, islice

from lexical_sae.data.decoding import lines_of
from lexical_sae.data.table import Table, list_places, quoted, refuse_repeated
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

Block = tuple[Sequence[int], list[list[str]]]
"""Lines and fields of some records."""


def csv_table(source: str, stream: TextIOBase, columns: Sequence[str] | None = None) -> Table:
    """The rows of CSV text opened with `newline=""`; a quoted field may span lines."""
    head = list(islice(stream, SNIFFED))
    named = _SEPARATOR_LINE.fullmatch(head[0]) if head else None
    lines = chain(head[1:] if named else head, stream)
    with _csv_limit:
        # The limit on field sizes is global to the csv module: raise it for long documents, and put it back.
        old_limit = csv.field_size_limit(LONGEST_FIELD)
        try:
            mark = (named[1] if named else _choose_separator(head)).replace("\\t", "\t")
            return _joined(source, _csv_blocks(source, lines, mark, 2 if named else 1), columns)
        finally:
            csv.field_size_limit(old_limit)


def tsv_table(source: str, stream: TextIOBase, columns: Sequence[str] | None = None) -> Table:
    """The rows of TSV text opened with `newline="\\n"`.

    Tabs always separate, as in GLUE; a field wholly in quotes is unwrapped, as spreadsheets do.
    """
    return _joined(source, _tsv_blocks(lines_of(stream)), columns)


def with_columns(
    parse: Callable[[str, TextIOBase, Sequence[str] | None], Table], columns: Sequence[str] | None
) -> Callable[[str, TextIOBase], Table]:
    """A reader of text whose columns are named, where they are not in its first line."""
    return lambda source, stream: parse(source, stream, columns)


def _csv_blocks(source: str, lines: Iterator[str], mark: str, first_line: int) -> Iterator[Block]:
    reader = csv.reader(lines, delimiter=mark, strict=True)
    line = first_line
    while True:
        records: list[list[str]] = []
        try:
            # Into a list that is there already, so that what was read before an error is known.
            records.extend(islice(reader, BLOCK))
        except csv.Error as error:
            broken = line + sum(map(_lines_in, records))
            raise DataError(
                f"{source}:{broken} breaks the CSV rules ({error}); put quotes around a field that holds a quote, "
                f'comma or line break, and double the quotes inside it ("")'
            ) from error
        if not records:
            return
        after = reader.line_num + first_line
        yield _numbers(records, line, after), records
        line = after


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


def _tsv_blocks(lines: Iterator[str]) -> Iterator[Block]:
    first = 1
    while block := list(islice(lines, BLOCK)):
        skipped = int(first == 1 and _SEPARATOR_LINE.fullmatch(block[0]) is not None)
        yield (
            range(first + skipped, first + len(block)),
            [[_unwrap(field) for field in line.split("\t")] for line in block[skipped:]],
        )
        first += len(block)


def _unwrap(field: str) -> str:
    if len(field) >= 2 and field[0] == field[-1] == '"' and '"' not in field[1:-1].replace('""', ""):
        return field[1:-1].replace('""', '"')
    return field


def _joined(source: str, blocks: Iterator[Block], names: Sequence[str] | None) -> Table:
    """The columns of all blocks; records without any field are left out, and a row of another width is an error."""
    numbers = array("q")
    ragged: list[str] = []
    values: list[list[str]] = [] if names is None else [[] for _ in names]
    for lines, records in blocks:
        if not all(map(any, records)):
            filled = [(line, fields) for line, fields in zip(lines, records, strict=True) if any(fields)]
            lines, records = [line for line, _ in filled], [fields for _, fields in filled]
        if names is None and records:
            names = [name.strip() or f"column {i}" for i, name in enumerate(records[0], start=1)]
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
