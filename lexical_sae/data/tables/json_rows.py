"""JSON lines, and arrays of JSON objects, with the line on which each object starts."""

import json
import re
from collections.abc import Mapping
from io import TextIOBase
from typing import Any

from lexical_sae.data.tables.decoding import lines_of
from lexical_sae.data.tables.table import Table, table_of_dicts
from lexical_sae.utils.errors import DataError

_SPACE = re.compile(r"[ \t\r\n]*")
_LINE_END = re.compile(r"\r\n|\r|\n")


def jsonl_table(source: str, stream: TextIOBase) -> Table:
    """One object per line of text opened with `newline="\\n"`; blank lines are skipped."""
    records: list[Mapping[str, object]] = []
    numbers: list[int] = []
    for number, line in enumerate(lines_of(stream), start=1):
        if line.strip():
            records.append(json_object(f"{source}:{number}", line, "write one object per line"))
            numbers.append(number)
    if not records:
        raise DataError(f"{source} is empty; write one JSON object per line")
    return table_of_dicts(source, records, numbers, is_file=True)


def json_table(source: str, stream: TextIOBase) -> Table:
    """An array of objects; a file that does not start with `[` is read as JSON lines."""
    start = stream.read(1)
    while start and start.isspace():
        start = stream.read(1)
    if start != "[":
        stream.seek(0)
        return jsonl_table(source, stream)
    stream.seek(0)
    return _array_table(source, stream.read())


def _array_table(source: str, text: str) -> Table:
    records: list[Mapping[str, object]] = []
    numbers: list[int] = []
    decoder = json.JSONDecoder()
    line, counted = 1, 0
    place = _after_space(text, text.index("[") + 1)
    while text[place : place + 1] != "]":
        line += len(_LINE_END.findall(text, counted, place))
        counted = place
        try:
            record, place = decoder.raw_decode(text, place)
        except json.JSONDecodeError as error:
            raise DataError(
                f"{source}:{error.lineno} is not JSON ({error.msg} at column {error.colno}); "
                "write an array of objects: [{...}, {...}]"
            ) from error
        except (ValueError, RecursionError) as error:
            raise _unreadable(f"{source}:{line}", error) from error
        records.append(_checked(f"{source}:{line}", record, "write an array of objects: [{...}, {...}]"))
        numbers.append(line)
        place = _after_space(text, place)
        if text[place : place + 1] == ",":
            place = _after_space(text, place + 1)
        elif text[place : place + 1] != "]":
            raise DataError(f"{source}:{line}: the array breaks off or lacks a comma after this object")
    if text[place + 1 :].strip():
        raise DataError(f"{source} goes on after the end of its array; write one array of objects")
    if not records:
        raise DataError(f"{source} is an empty array; write [{{...}}, {{...}}]")
    return table_of_dicts(source, records, numbers, is_file=True)


def _after_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    assert found is not None
    return found.end()


def json_object(place: str, line: str, remedy: str) -> Mapping[str, object]:
    """The object in a line of JSON; errors name the place and the remedy."""
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(f"{place} is not JSON ({error.msg} at column {error.colno}); {remedy}") from error
    except (ValueError, RecursionError) as error:
        raise _unreadable(place, error) from error
    return _checked(place, record, "write {...} on every line")


def _unreadable(place: str, error: Exception) -> DataError:
    """What Python's own limits refuse."""
    if isinstance(error, RecursionError):
        return DataError(f"{place} is nested too deeply; write flat objects")
    return DataError(f"{place} holds a number too long to read; put it in quotes")


def _checked(place: str, record: Any, remedy: str) -> Mapping[str, object]:
    if not isinstance(record, dict):
        raise DataError(f"{place} is a JSON {type(record).__name__}, not an object; {remedy}")
    return record
