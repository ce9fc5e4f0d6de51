"""Texts of a file or a named data set, for a model that is there already: its labels say how classes are numbered."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from lexical_sae.data import load_text_dataset
from lexical_sae.data.examples import TextSplit
from lexical_sae.data.files import as_table
from lexical_sae.data.rows import labelled_rows
from lexical_sae.data.sources.registry import TEXT_DATASETS
from lexical_sae.data.tables.cell_values import text_problem
from lexical_sae.data.tables.columns import choose_columns, choose_text_column
from lexical_sae.data.tables.table import list_places
from lexical_sae.data.targets import LabelColumns
from lexical_sae.inference.labels import label_index, labels_of, names_of
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.outputs import CLASSES, Classes, Labels, Number
from lexical_sae.utils.errors import DataError, SettingsError


@dataclass(frozen=True)
class Columns:
    """Which columns hold what, and whether labels are wanted at all."""

    text: str | None = None
    label: str | None = None
    is_labelled: bool = True
    skip_bad_rows: bool = False
    """Whether rows of a file without what is wanted are left out, instead of refused."""
    labels: tuple[str, ...] = ()
    """Columns of 0 and 1, for models of any number of labels; by default those of the model's names."""
    separator: str | None = None
    """What stands between the labels of a cell, for such models."""


@dataclass(frozen=True)
class Corpus:
    """Texts, with their classes where those are wanted."""

    texts: Sequence[str]
    labels: list[int] | None
    """As the model numbers its classes; None where the model's own decision counts."""
    notes: tuple[str, ...] = ()
    """What was inferred of the file, and which rows were left out."""


class GivenTexts(NamedTuple):
    """The texts of a file, and notes on rows that were left out."""

    texts: list[str]
    notes: tuple[str, ...]


def load_corpus(model: LexicalSAE, file: Path | None, data: str | None, columns: Columns) -> Corpus:
    """The texts of a file, or the test texts of a named data set, with their classes if those are wanted."""
    if (file is None) == (data is None):
        raise SettingsError("give either your texts (--file texts.csv) or a data set by name (--data sst2)")
    if data is not None:
        rows = _test_rows(data, columns)
        return Corpus(rows.texts, rows.classes(model, "class") if columns.is_labelled else None)
    assert file is not None
    if not columns.is_labelled:
        texts, notes = read_texts(file, columns.text, skip_bad_rows=columns.skip_bad_rows)
        return Corpus(texts, None, notes)
    rows = _file_rows(file, "--file", columns)
    return Corpus(rows.texts, rows.classes(model, "class"), rows.notes)


def labelled_texts(model: LexicalSAE, data: str, columns: Columns) -> tuple[TextSplit, tuple[str, ...]]:
    """Texts of a file, or test texts of a named set, labelled as the model numbers its classes; notes on guesses.

    For models of other output kinds, with what these have for a text.
    """
    if not isinstance(model.output, Classes):
        return _targets(model, data, columns)
    is_named = data in TEXT_DATASETS
    rows = _test_rows(data, columns) if is_named else _file_rows(data, "data", columns)
    return TextSplit(tuple(rows.texts), tuple(rows.classes(model, f"{data}: label"))), rows.notes


def _targets(model: LexicalSAE, data: str, columns: Columns) -> tuple[TextSplit, tuple[str, ...]]:
    """The texts of a file with any of the model's labels, or a number each."""
    if data in TEXT_DATASETS:
        raise SettingsError(f"{data} has {CLASSES.title}, and this model has {model.output.title}; give a file")
    table, names = as_table(data, "data"), names_of(model)
    given = LabelColumns(columns.label, columns.labels, columns.separator, model.output.kind)
    if given == LabelColumns(target=model.output.kind) and all(name in table.columns for name in names):
        given = COLUMNS_OF[model.output.kind](names)
    found = given.reader(skip_bad_rows=columns.skip_bad_rows).read({"data": table}, columns.text, names)
    return found.splits["data"], (*table.notes, *found.notes)


COLUMNS_OF: dict[str, Callable[[tuple[str, ...]], LabelColumns]] = {
    Labels().kind: lambda names: LabelColumns(columns=names),
    Number().kind: lambda names: LabelColumns(column=names[0], target=Number().kind),
}
"""Where a file has columns of the model's names, these hold what it is measured on."""


def read_texts(file: Path, column: str | None = None, *, skip_bad_rows: bool = False) -> GivenTexts:
    """The texts of a data file, in its order; rows without a text are refused with their lines.

    Without a `column` it is the only one, or the one with the most usual name. With `skip_bad_rows` rows without a text
    are left out, and counted in a note.
    """
    table = as_table(file, "--file")
    name = column or choose_text_column(list(table.columns), str(file))
    cells = table.column(name)
    problems = {row: problem for row, cell in enumerate(cells) if (problem := text_problem(cell))}
    bad = [f"{table.place(row)} ({problem})" for row, problem in problems.items()]
    if bad and not skip_bad_rows:
        raise DataError(
            f"rows without a text in column {name!r}: {list_places(bad)}; mend them, or leave them out with "
            "--skip-bad-rows"
        )
    texts = [str(cell) for row, cell in enumerate(cells) if row not in problems]
    if not texts:
        raise DataError(f"{file} has no row with a text in column {name!r}")
    notes = (f"left out {len(bad)} of {len(cells)} rows, without a text: {list_places(bad)}",) if bad else ()
    return GivenTexts(texts, notes)


@dataclass(frozen=True)
class _Rows:
    """Texts with their labels as they are written, and what was inferred about them."""

    texts: Sequence[str]
    labels: Sequence[str]
    notes: tuple[str, ...]

    def classes(self, model: LexicalSAE, source: str) -> list[int]:
        """The labels as the model numbers its classes; `source` is named in errors."""
        names = labels_of(model)
        place = {name: label_index(names, name, source) for name in dict.fromkeys(self.labels)}
        return [place[name] for name in self.labels]


def _test_rows(data: str, columns: Columns) -> _Rows:
    if columns.text or columns.label:
        raise SettingsError(f"--text-column and --label-column are for files; {data} has columns of its own")
    dataset = load_text_dataset(data)
    return _Rows(dataset.test.texts, [dataset.label_names[label] for label in dataset.test.labels], dataset.notes)


def _file_rows(file: str | Path, source: str, columns: Columns) -> _Rows:
    table = as_table(file, source)
    text, label, guesses = choose_columns(table, columns.text, columns.label)
    rows = labelled_rows(table, text, label, skip_bad_rows=columns.skip_bad_rows)
    return _Rows(rows.texts, list(rows.labels), (*guesses, *rows.notes))
