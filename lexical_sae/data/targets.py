"""What the rows of a table say is to be learned: a class, any of several labels, or a number. Never guessed.

classes   one label in one column (the default)
labels    a column of 0 and 1 per label, or one column with lists, JSON lists or labels with a separator between
number    one column of numbers
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from lexical_sae.data.examples import TextSplit
from lexical_sae.data.rows import (
    LabelledRows,
    class_notes,
    identities_of,
    labelled_rows,
    look_alike_notes,
    text_split,
    usable_rows,
)
from lexical_sae.data.tables.cell_values import is_missing, label_problem, label_text, sorted_label_names
from lexical_sae.data.tables.columns import choose_columns, choose_text_column
from lexical_sae.data.tables.table import Table, quoted
from lexical_sae.utils.errors import DataError
from lexical_sae.utils.suggest import did_you_mean

STRATA = 10
"""Groups of near numbers that a fair split keeps in proportion."""


@dataclass(frozen=True)
class ReadTargets:
    """The splits of some tables."""

    names: tuple[str, ...]
    splits: Mapping[str, TextSplit]
    notes: tuple[str, ...]


@runtime_checkable
class TargetReader(Protocol):
    """Reads tables of one kind."""

    output: ClassVar[str]
    """Name of the kind, as `TextDataset.output` has it."""

    def read(
        self, tables: Mapping[str, Table], text_column: str | None, names: Sequence[str] | None = None
    ) -> ReadTargets:
        """The tables as splits; `names` are those of a model, where the texts are for one that is there already."""
        ...

    def notes(self, names: tuple[str, ...], train: TextSplit, test: TextSplit) -> Sequence[str]:
        """What is to be said of the final splits."""
        ...


@dataclass(frozen=True)
class ClassReader:
    """One label per text."""

    label_column: str | None
    skip_bad_rows: bool
    output: ClassVar = "classes"

    def read(
        self, tables: Mapping[str, Table], text_column: str | None, names: Sequence[str] | None = None
    ) -> ReadTargets:
        first = next(iter(tables.values()))
        text, label, guesses = choose_columns(first, text_column, self.label_column)
        usable = {role: labelled_rows(t, text, label, skip_bad_rows=self.skip_bad_rows) for role, t in tables.items()}
        if names is None:
            _check_classes(first, next(iter(usable.values())).labels)
        found = tuple(names or sorted_label_names([label for rows in usable.values() for label in rows.labels]))
        ids = {label: i for i, label in enumerate(found)}
        splits = {role: text_split(tables[role], rows, ids) for role, rows in usable.items()}
        return ReadTargets(found, splits, (*guesses, *_row_notes(usable), *look_alike_notes(found)))

    def notes(self, names: tuple[str, ...], train: TextSplit, test: TextSplit) -> Sequence[str]:
        return class_notes(names, train.labels, test.labels)


@dataclass(frozen=True)
class LabelReader:
    """Any number of labels per text."""

    label_column: str | None
    label_columns: tuple[str, ...]
    separator: str | None
    skip_bad_rows: bool
    output: ClassVar = "labels"

    def read(
        self, tables: Mapping[str, Table], text_column: str | None, names: Sequence[str] | None = None
    ) -> ReadTargets:
        read = self._from_columns if self.label_columns else self._from_cells
        found, usable, guesses = read(tables, text_column)
        if names is not None:
            _require_known(next(iter(tables.values())), found, names)
        names = tuple(found if names is None else names)
        rows = {role: [tuple(int(n in own) for n in names) for own in r.labels] for role, r in usable.items()}
        splits = {
            role: TextSplit(
                r.texts, tuple(rows[role]), identities_of(tables[role], r), strata_of=label_strata(rows[role])
            )
            for role, r in usable.items()
        }
        return ReadTargets(names, splits, (*guesses, *_row_notes(usable), *look_alike_notes(names)))

    def _from_columns(self, tables: Mapping[str, Table], text_column: str | None) -> "_Found":
        """From a column of 0 and 1 per label."""
        names = self.label_columns
        first = next(iter(tables.values()))
        others = [name for name in first.columns if name not in names]
        text = text_column or choose_text_column(others, first.source)
        usable = {}
        for role, table in tables.items():
            cells = list(zip(*(table.column(name) for name in names), strict=True))
            problem, value = _problem_of_marks(names), _marked(names)
            usable[role] = usable_rows(table, text, cells, problem, value, skip_bad_rows=self.skip_bad_rows)
        guesses = () if text_column else (f"guessed: text column {text!r:.60}",)
        return names, usable, guesses

    def _from_cells(self, tables: Mapping[str, Table], text_column: str | None) -> "_Found":
        """From one column of lists."""
        first = next(iter(tables.values()))
        text, label, guesses = choose_columns(first, text_column, self.label_column)
        usable = {
            role: usable_rows(
                table, text, table.column(label), self._problem, self._labels, skip_bad_rows=self.skip_bad_rows
            )
            for role, table in tables.items()
        }
        return sorted_label_names({n for r in usable.values() for own in r.labels for n in own}), usable, guesses

    def _problem(self, cell: object) -> str:
        try:
            labels = self._listed(cell)
        except ValueError as error:
            return str(error)
        return next(filter(None, map(label_problem, labels)), "")

    def _labels(self, cell: object) -> frozenset[str]:
        return frozenset(map(label_text, self._listed(cell)))

    def _listed(self, cell: object) -> list[Any]:
        """The labels of a cell, as they are written; ValueError says why it has none."""
        if isinstance(cell, np.ndarray | set | frozenset | tuple | list):
            return list(cell)
        if is_missing(cell):
            raise ValueError("no labels; write an empty list, or an empty cell, for a text without any")
        if not isinstance(cell, str):
            raise ValueError(f"labels are {type(cell).__name__} {cell!r:.40}, not a list")
        if not cell.strip():
            return []
        if self.separator is not None:
            return [part for part in cell.split(self.separator) if part.strip()]
        try:
            listed = json.loads(cell)
        except ValueError:
            listed = None
        if not isinstance(listed, list):
            raise ValueError(f'{cell!r:.40} is no JSON list; name the label_separator, or write ["a", "b"]')
        return listed

    def notes(self, names: tuple[str, ...], train: TextSplit, test: TextSplit) -> Sequence[str]:
        notes = []
        for role, split, so in (("train", train, ": nothing can be learned of it"), ("test", test, "")):
            counts = np.sum(np.asarray(split.labels, dtype=int).reshape(-1, len(names)), axis=0)
            never = [name for name, count in zip(names, counts, strict=True) if not count]
            always = [name for name, count in zip(names, counts, strict=True) if count == len(split)]
            notes += [f"no {role} row has the label{_s(never)} {quoted(never)}{so}"] if never else []
            notes += [f"every {role} row has the label{_s(always)} {quoted(always)}{so}"] if always else []
        return notes


@dataclass(frozen=True)
class NumberReader:
    """A number per text."""

    label_column: str | None
    skip_bad_rows: bool
    output: ClassVar = "number"

    def read(
        self, tables: Mapping[str, Table], text_column: str | None, names: Sequence[str] | None = None
    ) -> ReadTargets:
        text, label, guesses = choose_columns(next(iter(tables.values())), text_column, self.label_column)
        usable = {
            role: usable_rows(
                table, text, table.column(label), number_problem, as_number, skip_bad_rows=self.skip_bad_rows
            )
            for role, table in tables.items()
        }
        splits = {
            role: TextSplit(r.texts, r.labels, identities_of(tables[role], r), strata_of=number_strata(r.labels))
            for role, r in usable.items()
        }
        return ReadTargets(tuple(names or (label,)), splits, (*guesses, *_row_notes(usable)))

    def notes(self, names: tuple[str, ...], train: TextSplit, test: TextSplit) -> Sequence[str]:
        del test
        low, high = min(train.labels), max(train.labels)
        return [f"{names[0]} is a number: {low:g} to {high:g} in {len(train)} train rows"]


@dataclass(frozen=True)
class LabelColumns:
    """Which columns hold what is to be learned, as a user says it."""

    column: str | None = None
    columns: tuple[str, ...] = ()
    separator: str | None = None
    target: str | None = None

    def reader(self, *, skip_bad_rows: bool = False) -> TargetReader:
        """What reads them; options that do not go together are refused."""
        is_many = bool(self.columns) or self.separator is not None
        target = self.target or ("labels" if is_many else "classes")
        if target not in READERS:
            raise DataError(
                f"target {target!r} is unknown{did_you_mean(target, READERS)} Choose from {', '.join(READERS)}"
            )
        if is_many and target != "labels":
            raise DataError(f"label_columns and label_separator are for any number of labels, not target: {target}")
        if self.columns and (self.separator is not None or self.column):
            raise DataError("label_columns name every label: leave out label_column and label_separator")
        if twice := [name for name, count in Counter(self.columns).items() if count > 1]:
            raise DataError(f"label_columns names {quoted(twice)} twice")
        if self.separator == "":
            raise DataError("label_separator is empty; give what stands between two labels, such as ;")
        return READERS[target](self, skip_bad_rows)


READERS: dict[str, Callable[[LabelColumns, bool], TargetReader]] = {
    "classes": lambda of, skip: ClassReader(of.column, skip),
    "labels": lambda of, skip: LabelReader(of.column, of.columns, of.separator, skip),
    "number": lambda of, skip: NumberReader(of.column, skip),
}
"""What reads each kind, by its name."""

_Found = tuple[tuple[str, ...], dict[str, LabelledRows], tuple[str, ...]]
"""Names, usable rows by split (each with the set of its labels), and what was guessed."""


def label_strata(rows: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The rarest label of each text, so that a fair split has some of every label; 0 for texts without any.

    Example: [[1, 0], [1, 1], [0, 0]] -> (1, 2, 0)
    """
    if not rows:
        return ()
    marks = np.asarray(rows)
    counts = np.where(marks == 1, marks.sum(0), len(marks) + 1)
    return tuple(np.where(marks.any(1), counts.argmin(1) + 1, 0).tolist())


def number_strata(numbers: Sequence[float]) -> tuple[int, ...]:
    """Groups of near numbers: each number itself where there are few, otherwise tenths of the texts by size."""
    if not numbers:
        return ()
    distinct, place = np.unique(np.asarray(numbers, dtype=np.float64), return_inverse=True)
    if len(distinct) <= STRATA:
        return tuple(place.tolist())
    edges = np.quantile(numbers, np.linspace(0, 1, STRATA + 1)[1:-1])
    return tuple(np.searchsorted(edges, numbers, side="right").tolist())


def number_problem(cell: object) -> str:
    """Why a cell is no number; empty where it is one."""
    if is_missing(cell) or isinstance(cell, str) and not cell.strip():
        return "no number"
    if isinstance(cell, bool | np.bool_):
        return f"{cell} is not a number"
    try:
        number = float(cell)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError, OverflowError):
        return f"{cell!r:.40} is not a number; for names of classes leave out target: number"
    return "" if math.isfinite(number) else f"{cell!r:.40} is not finite"


def as_number(cell: Any) -> float:
    """A cell that `number_problem` has nothing to say about."""
    return float(cell)


def _problem_of_marks(names: Sequence[str]) -> Callable[[Any], str]:
    def problem(cells: Any) -> str:
        for name, cell in zip(names, cells, strict=True):
            if is_missing(cell) or isinstance(cell, str) and not cell.strip():
                return f"{name!r} is empty, not 0 or 1"
            if _mark(cell) is None:
                return f"{name!r} is {cell!r:.40}, not 0 or 1"
        return ""

    return problem


def _marked(names: Sequence[str]) -> Callable[[Any], frozenset[str]]:
    return lambda cells: frozenset(name for name, cell in zip(names, cells, strict=True) if _mark(cell))


def _mark(cell: object) -> bool | None:
    """Whether a label applies; None where a cell says neither."""
    return {"1": True, "true": True, "0": False, "false": False}.get(label_text(cell))


def _require_known(table: Table, found: Sequence[str], names: Sequence[str]) -> None:
    if unknown := [name for name in found if name not in names]:
        raise DataError(
            f"{table.source} has labels that the model does not know: {quoted(unknown)}; it has {quoted(names)}"
        )


def _check_classes(table: Table, labels: tuple[str, ...]) -> None:
    distinct = set(labels)
    if len(distinct) == 1:
        raise DataError(f"{table.source} has only one class, {labels[0]!r}; a classifier needs at least two")
    if len(labels) >= 20 and len(distinct) > len(labels) // 2:
        raise DataError(
            f"{table.source} has {len(distinct)} different labels in {len(labels)} rows: that looks like a number or "
            f"an id, not a class; name the right column with label_column=, or say target: number"
        )


def _row_notes(usable: Mapping[str, LabelledRows]) -> tuple[str, ...]:
    return tuple(note for rows in usable.values() for note in rows.notes)


def _s(names: Sequence[str]) -> str:
    return "s" * (len(names) > 1)
