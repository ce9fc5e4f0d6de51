"""Rows of a file with the line each came from; CSV, TSV and JSON lines, plain or gzip-compressed."""

import csv
import gzip
import io
import json
import re
import threading
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lexical_sae.utils.errors import DataError
from lexical_sae.utils.suggest import did_you_mean

_csv_limit = threading.Lock()
MAX_PLACES = 5
MAX_NAMES = 20
_SEPARATOR_LINE = re.compile(r'"?sep=(\\t|\t|[^\w\s"])"?[\r\n]*', re.IGNORECASE)
"""The first line that gives Excel the field separator: `sep=;`."""
SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson")


@dataclass(frozen=True)
class Table:
    """Named columns of equal length, and where each row was found."""

    source: str
    """The file, or what else the rows came from."""
    columns: Mapping[str, Sequence[object]]
    numbers: Sequence[int]
    """Line (or row) number of each row."""
    is_file: bool = True

    def __len__(self) -> int:
        return len(self.numbers)

    def place(self, row: int) -> str:
        """`reviews.csv:17`, or `train DataFrame row 17`."""
        return f"{self.source}{':' if self.is_file else ' row '}{self.numbers[row]}"

    def column(self, name: str) -> Sequence[object]:
        """One column; an unknown name is an error that lists the columns seen."""
        if name not in self.columns:
            raise DataError(
                f"{self.source} has no column {name!r}{did_you_mean(name, self.columns)} "
                f"Columns seen: {quoted(self.columns) or 'none'}"
            )
        return self.columns[name]

    def with_columns(self, **columns: Sequence[object]) -> "Table":
        """The same rows with columns added or replaced."""
        return replace(self, columns={**self.columns, **columns})

    def take(self, rows: Sequence[int]) -> "Table":
        """The rows at these positions."""
        columns = {name: [values[i] for i in rows] for name, values in self.columns.items()}
        return replace(self, columns=columns, numbers=[self.numbers[i] for i in rows])


def read_table(path: Path, columns: Sequence[str] | None = None) -> Table:
    """The rows of a `.csv`, `.tsv`, `.jsonl` or `.ndjson` file, also with `.gz`.

    `columns` names the columns of a file that has no header line.
    """
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(f"{path}: no known format has the ending {suffix!r}; use one of {', '.join(SUFFIXES)} (or .gz)")
    text = read_text(path)
    if suffix in (".jsonl", ".ndjson"):
        return _read_jsonl(str(path), text)
    records = _tsv_records(text) if suffix == ".tsv" else _csv_records(str(path), text)
    return _table_of_records(str(path), records, columns)


def read_text(path: Path) -> str:
    """The file decoded as UTF-8, byte-order mark removed; a wrong encoding is an error with its position."""
    try:
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gzip.decompress(data)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is not a complete gzip file ({error}); fetch it again") from error
    except OSError as error:
        raise type(error)(f"cannot read {path}: {error.strerror}; check the path and its permissions") from error
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or data[:400].count(0) > len(data[:400]) // 4:
        raise DataError(f"{path} looks like UTF-16 or a binary file, not UTF-8 text; save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n" if b"\n" in data else b"\r", 0, error.start) + 1
        raise DataError(
            f"{path}:{line} is not UTF-8: byte 0x{data[error.start]:02x} at position {error.start}; "
            f"save it as UTF-8, for example `iconv -f cp1252 -t utf-8`"
        ) from error


def split_lines(text: str) -> list[str]:
    """The lines of a text that ends them with `\\n`, `\\r\\n` or, where it has no line feed, `\\r`.

    Example: "a\\r\\nb\\n" -> ["a", "b"]; "a\\rb" -> ["a", "b"]; "a\\rb\\nc" -> ["a\\rb", "c"]
    """
    # Not splitlines(): it also cuts at U+2028, which texts and JSON strings may hold.
    text = text.replace("\r\n", "\n").rstrip("\r\n")
    return text.split("\n" if "\n" in text else "\r")


def list_places(places: Sequence[str]) -> str:
    """The first few places, and how many more.

    Example: six places -> "a.csv:2, a.csv:3, a.csv:4, a.csv:5, a.csv:6 and 1 more"
    """
    more = len(places) - MAX_PLACES
    return ", ".join(places[:MAX_PLACES]) + (f" and {more} more" if more > 0 else "")


def quoted(names: Iterable[object]) -> str:
    """Names from a file for a message: control characters made visible, long names and long lists cut.

    Example: ["text", "\\x1b[31m"] -> "'text', '\\\\x1b[31m'"
    """
    names = list(names)
    more = len(names) - MAX_NAMES
    return ", ".join(f"{name!r:.60}" for name in names[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def _csv_records(source: str, text: str) -> Iterator[tuple[int, list[str]]]:
    """(first line, fields) of each record; a quoted field may span lines."""
    lines = io.StringIO(text, newline="")
    header = next(lines, "")
    named = _SEPARATOR_LINE.fullmatch(header)
    delimiter = (named[1] if named else _guess_separator(header)).replace("\\t", "\t")
    if not named:
        lines.seek(0)
    line = first_line = 2 if named else 1
    with _csv_limit:
        # The limit on field sizes is global to the csv module: raise it for long documents, and put it back.
        old_limit = csv.field_size_limit(max(len(text), 1))
        try:
            reader = csv.reader(lines, delimiter=delimiter, strict=True)
            records = []
            for fields in reader:
                records.append((line, fields))
                line = reader.line_num + first_line
        except csv.Error as error:
            raise DataError(
                f"{source}:{line} breaks the CSV rules ({error}); put quotes around a field that holds a quote, "
                f'comma or line break, and double the quotes inside it ("")'
            ) from error
        finally:
            csv.field_size_limit(old_limit)
    yield from records


def _guess_separator(header: str) -> str:
    # Spreadsheets in many countries write semicolons; a header without a comma gives it away.
    return next((mark for mark in (",", ";", "\t") if mark in header), ",")


def _tsv_records(text: str) -> Iterator[tuple[int, list[str]]]:
    """(line, fields): tabs always separate, as in GLUE; a field wholly in quotes is unwrapped, as spreadsheets do."""
    for number, line in enumerate(split_lines(text), start=1):
        if number == 1 and _SEPARATOR_LINE.fullmatch(line):
            continue
        yield number, [_unwrap(field) for field in line.split("\t")]


def _unwrap(field: str) -> str:
    if len(field) >= 2 and field[0] == field[-1] == '"' and '"' not in field[1:-1].replace('""', ""):
        return field[1:-1].replace('""', '"')
    return field


def _table_of_records(source: str, records: Iterator[tuple[int, list[str]]], columns: Sequence[str] | None) -> Table:
    rows = [(line, fields) for line, fields in records if any(fields)]
    if columns is None:
        if not rows:
            raise DataError(f"{source} is empty; it needs a header line and rows")
        columns = [name.strip() or f"column {i}" for i, name in enumerate(rows.pop(0)[1], start=1)]
    refuse_repeated(source, columns)
    if ragged := [f"{source}:{line} ({len(fields)} fields)" for line, fields in rows if len(fields) != len(columns)]:
        raise DataError(
            f"every row needs {len(columns)} fields ({quoted(columns)}), not so at {list_places(ragged)}; "
            f"put quotes around a text that holds the separator"
        )
    by_column = zip(*(fields for _, fields in rows), strict=True) if rows else ((),) * len(columns)
    return Table(source, dict(zip(columns, by_column, strict=True)), [line for line, _ in rows])


def refuse_repeated(source: str, columns: Iterable[str]) -> None:
    """An error if two columns have one name."""
    if twice := sorted(name for name, count in Counter(columns).items() if count > 1):
        raise DataError(f"{source} has more than one column named {quoted(twice)}; rename one")


def table_of_dicts(
    source: str, records: Sequence[Mapping[str, object]], numbers: Sequence[int], is_file: bool
) -> Table:
    """One row per record, one column per key that any of them has; what a record lacks is None."""
    names = dict.fromkeys(name for record in records for name in record)
    return Table(source, {name: [record.get(name) for record in records] for name in names}, numbers, is_file)


def _read_jsonl(source: str, text: str) -> Table:
    records: list[Mapping[str, object]] = []
    numbers: list[int] = []
    for number, line in enumerate(split_lines(text), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(
                f"{source}:{number} is not JSON ({error.msg} at column {error.colno}); write one object per line"
            ) from error
        except ValueError as error:
            raise DataError(f"{source}:{number} holds a number too long to read; put it in quotes") from error
        except RecursionError as error:
            raise DataError(f"{source}:{number} is nested too deeply; write one flat object per line") from error
        if not isinstance(record, dict):
            raise DataError(
                f"{source}:{number} is a JSON {type(record).__name__}, not an object; write {{...}} on every line"
            )
        records.append(record)
        numbers.append(number)
    if not records:
        raise DataError(f"{source} is empty; write one JSON object per line")
    return table_of_dicts(source, records, numbers, is_file=True)
