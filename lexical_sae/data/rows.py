"""From table rows to checked examples: which rows are usable, what the classes are called, which identities occur."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lexical_sae.data.examples import TextSplit
from lexical_sae.data.tables.cell_values import is_missing, label_problem, label_text, repair_text, text_problem
from lexical_sae.data.tables.columns import IDENTITY_PREFIX
from lexical_sae.data.tables.table import Table, list_places, quoted
from lexical_sae.utils.errors import DataError


@dataclass(frozen=True)
class LabelledRows:
    """Usable rows of a table, labels still as they were written."""

    texts: tuple[str, ...]
    labels: tuple[Any, ...]
    rows: tuple[int, ...]
    """Position of each in the table."""
    notes: tuple[str, ...] = ()


def labelled_rows(table: Table, text: str, label: str, *, skip_bad_rows: bool) -> LabelledRows:
    """The rows with a text and a label.

    A row without one is an error that names its place; with `skip_bad_rows` it is left out and counted in a note.
    """
    return usable_rows(table, text, table.column(label), label_problem, label_text, skip_bad_rows=skip_bad_rows)


def usable_rows(
    table: Table,
    text: str,
    cells: Sequence[object],
    problem_of: Callable[[object], str],
    value_of: Callable[[object], Any],
    *,
    skip_bad_rows: bool,
) -> LabelledRows:
    """The rows with a text and a usable label cell, which `problem_of` has nothing to say about.

    As `labelled_rows`; the labels are what `value_of` makes of the cells.
    """
    kept: list[tuple[str, Any, int]] = []
    bad: list[str] = []
    repaired = 0
    for row, (raw_text, raw_label) in enumerate(zip(table.column(text), cells, strict=True)):
        problem = text_problem(raw_text) or problem_of(raw_label)
        if problem:
            bad.append(f"{table.place(row)} ({problem})")
            continue
        assert isinstance(raw_text, str)
        fixed = repair_text(raw_text)
        repaired += fixed != raw_text
        kept.append((fixed, value_of(raw_label), row))
    if bad and not skip_bad_rows:
        raise DataError(
            f"{len(bad)} unusable rows: {list_places(bad)}; mend them, or leave them out with skip_bad_rows: true "
            f"(YAML, under data), --skip-bad-rows (command line) or skip_bad_rows=True (Python)"
        )
    notes = [f"left out {len(bad)} unusable rows of {table.source}: {list_places(bad)}"] if bad else []
    if repaired:
        notes.append(f"replaced NUL or broken characters in {repaired} texts of {table.source}")
    if not kept:
        raise DataError(f"{table.source} has no usable row; it needs at least one text with a label")
    texts, labels, rows = zip(*kept, strict=True)
    return LabelledRows(texts, labels, rows, tuple(notes))


def label_ids(table: Table, rows: LabelledRows, ids: Mapping[str, int]) -> tuple[int, ...]:
    """The labels as class numbers; a label that is no class is an error with its place."""
    unknown = [i for i, label in enumerate(rows.labels) if label not in ids]
    if unknown:
        places = [f"{table.place(rows.rows[i])} ({rows.labels[i]!r})" for i in unknown]
        raise DataError(f"unknown label at {list_places(places)}; known are {quoted(ids)}")
    return tuple(ids[label] for label in rows.labels)


def text_split(table: Table, rows: LabelledRows, ids: Mapping[str, int]) -> TextSplit:
    """The rows as a split, with the identities that the table's `identity:` columns hold."""
    return TextSplit(rows.texts, label_ids(table, rows, ids), identities_of(table, rows))


def identities_of(table: Table, rows: LabelledRows) -> dict[str, tuple[float, ...]] | None:
    """The identities that the table's `identity:` columns hold; None where it has none."""
    identities: dict[str, tuple[float, ...]] = {}
    for column, values in table.columns.items():
        if not column.startswith(IDENTITY_PREFIX):
            continue
        name = column.removeprefix(IDENTITY_PREFIX).strip()
        if not name:
            raise DataError(f"{table.source}: column {column!r} names no identity; write {IDENTITY_PREFIX}<name>")
        if name in identities:
            raise DataError(f"{table.source} has two columns for identity {name!r}; rename one")
        identities[name] = _shares(table, column, values, rows.rows)
    return identities or None


def _shares(table: Table, column: str, values: Sequence[Any], rows: Sequence[int]) -> tuple[float, ...]:
    """Cells as numbers from 0 to 1, blanks as NaN."""
    try:
        shares = tuple(math.nan if values[i] in (None, "") else float(values[i]) for i in rows)
    except (TypeError, ValueError):
        shares = (math.inf,)
    numbers = np.array(shares)
    if not ((numbers < 0) | (numbers > 1)).any():
        return shares
    # Not one by one from the start: the largest set has 43 million cells.
    return tuple(_share(table, column, values[i], i) for i in rows)


def _share(table: Table, column: str, value: Any, row: int) -> float:
    if is_missing(value) or isinstance(value, str) and not value.strip():
        return math.nan
    try:
        share = float(value)
    except (TypeError, ValueError):
        share = math.inf
    if math.isnan(share) or 0 <= share <= 1:
        return share
    raise DataError(
        f"{table.place(row)}: column {column!r} holds {value!r:.60}; give a number from 0 to 1, or a blank for unknown"
    )


def as_float(value: object, table: Table, row: int) -> float:
    """A cell as a number, or an error with its place."""
    try:
        return float(value)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError):
        raise DataError(f"{table.place(row)}: {value!r:.60} is not a number") from None


def class_notes(names: Sequence[str], train: Sequence[int], test: Sequence[int]) -> list[str]:
    """Classes that train or test lacks, one note for each of the two: a small subsample may lack dozens."""
    notes: list[str] = []
    for role, labels, so in (("train", train, ": {} can never be learned"), ("test", test, "")):
        absent = [names[c] for c in sorted(set(range(len(names))) - set(labels))]
        if len(absent) == 1:
            notes.append(f"class {quoted(absent)} has no {role} row{so.format('it')}")
        elif absent:
            notes.append(f"classes {quoted(absent)} have no {role} row{so.format('they')}")
    return notes


def look_alike_notes(names: Iterable[str]) -> list[str]:
    """Classes whose names differ only in case or spacing: kept apart, but seldom meant.

    Example: ["bad", "Good", "good"] -> one note, on 'Good' and 'good'
    """
    alike: dict[str, list[str]] = defaultdict(list)
    for name in names:
        alike[" ".join(name.casefold().split())].append(name)
    return [
        f"classes {' and '.join(quoted([name]) for name in same)} differ only in case or spacing and are kept apart; "
        f"write them alike if they are one"
        for same in alike.values()
        if len(same) > 1
    ]
