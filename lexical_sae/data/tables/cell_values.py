"""What one cell holds: a text, the name of a class, or nothing."""

import re
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from numbers import Number
from typing import Any

import numpy as np

MAX_LABEL_LENGTH = 200
"""Characters; what is longer is a text in the wrong column, not the name of a class."""
_WHOLE_NUMBER = re.compile(r"([+-]?)(0|[1-9][0-9]*)(\.0*)?")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def repair_text(text: str) -> str:
    """The text without what no tokenizer takes: NUL becomes a space, half a surrogate pair U+FFFD.

    Example: repair_text("a\\0b \\ud83d") -> "a b \\ufffd"
    """
    text = text.replace("\0", " ")
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def is_missing(value: object) -> bool:
    """None, NaN of any number type, and the gaps of pandas."""
    if isinstance(value, str):
        return False  # Nearly every cell: the checks below would take as long as reading the file.
    # pandas' markers go by name: this room does not import pandas.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    value = _plain(value)
    return isinstance(value, Number | np.generic) and bool(value != value)


def text_problem(value: object) -> str:
    """Why a cell is no text; empty where it is one."""
    if is_missing(value):
        return "no text"
    if not isinstance(value, str):
        return f"text is {type(value).__name__}, not a string"
    return "" if repair_text(value).strip() else "empty text"


def label_problem(value: object) -> str:
    """Why a cell is no class; empty where it is one."""
    # Few different ones, in hundreds of thousands of rows.
    return _label_problem_of_text(value) if type(value) is str else _label_problem(value)


@lru_cache(maxsize=4096)
def _label_problem_of_text(value: str) -> str:
    return _label_problem(value)


def _label_problem(value: object) -> str:
    if is_missing(value):
        return "no label"
    value = _plain(value)
    if not isinstance(value, str | bool | int | float | Decimal):
        return f"label is {type(value).__name__}, not a name or a number"
    # Before any str(): Python refuses to print more than 4,300 digits.
    if isinstance(value, int) and abs(value) >= 10**MAX_LABEL_LENGTH:
        return f"label is a number of more than {MAX_LABEL_LENGTH} digits"
    name = label_text(value)
    if len(name) > MAX_LABEL_LENGTH:
        return f"label of {len(name)} characters, at most {MAX_LABEL_LENGTH}: is this the label column?"
    return "" if name else "empty label"


def label_text(value: object) -> str:
    """The name a label goes by: 1, 1.0, "1" and "1.0" are one class, and so are True and "TRUE".

    Only whole numbers are read as numbers: "01", "1.10" and "1e3" may be codes or versions, and stay as written.

    Example: label_text(1.0) -> "1"; label_text(" R&B, <soul> ") -> "R&B, <soul>"
    """
    value = _plain(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return _class_name(str(value))


@lru_cache(maxsize=4096)
def _class_name(written: str) -> str:
    name = repair_text(written).strip()
    if name.lower() in ("true", "false"):
        return name.lower()
    if number := _WHOLE_NUMBER.fullmatch(name):
        sign, digits = number[1], number[2]
        return f"-{digits}" if sign == "-" and digits != "0" else digits
    return name


def sorted_label_names(labels: Iterable[str]) -> tuple[str, ...]:
    """Distinct labels: numbers by size, names by alphabet.

    Example: ["10", "9", "2.5"] -> ("2.5", "9", "10"); ["b", "10", "a"] -> ("10", "a", "b")
    """
    distinct = set(labels)
    numeric = all(_NUMBER.fullmatch(label) for label in distinct)
    return tuple(sorted(distinct, key=(lambda label: (Decimal(label), label)) if numeric else None))


def _plain(value: Any) -> Any:
    """The Python value of a numpy or torch number; anything else is itself."""
    # A time in nanoseconds would come out as a bare number.
    if getattr(value, "ndim", None) != 0 or isinstance(value, np.datetime64 | np.timedelta64):
        return value
    return value.item()
