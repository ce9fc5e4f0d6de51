"""The texts that a command is asked to read: the options that name them, and the reading."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from splade.scripts.given_texts import read_texts

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from collections.abc import Sequence

    from splade.data.examples import TextSplit
    from splade.models.lexical_sae import LexicalSAE

File = Annotated[Path | None, typer.Option(help="Your texts: a CSV, TSV or JSONL file.")]
Named = Annotated[str | None, typer.Option(help="A data set by name (docs/data.md); its test texts are read.")]
TextColumn = Annotated[str | None, typer.Option(help="Column with the text; guessed when not given.")]
LabelColumn = Annotated[str | None, typer.Option(help="Column with the label; guessed when not given.")]

SkipBadRows = Annotated[
    bool, typer.Option("--skip-bad-rows", help="Leave out rows of a file without text (or label) instead of stopping.")
]


@dataclass(frozen=True)
class Columns:
    """Which columns hold what, and whether labels are wanted at all."""

    text: str | None
    label: str | None
    is_labelled: bool
    skip_bad_rows: bool = False
    """Whether rows of a file without what is wanted are left out, instead of refused."""


@dataclass(frozen=True)
class Corpus:
    """Texts, with their classes where those were asked for."""

    texts: "Sequence[str]"
    labels: "list[int] | None"
    """As the model numbers its classes; None where the model's own decision counts."""


def load_corpus(model: "LexicalSAE", file: Path | None, data: str | None, columns: Columns) -> Corpus:
    """The texts that were asked for, with their classes if those were asked for too."""
    if (file is None) == (data is None):
        raise ValueError("give either your texts (--file texts.csv) or a data set by name (--data sst2)")
    if data is not None:
        rows = _test_rows(data, columns)
        return Corpus(rows.texts, rows.classes(model, "class") if columns.is_labelled else None)
    assert file is not None
    if not columns.is_labelled:
        texts, notes = read_texts(file, columns.text, skip_bad_rows=columns.skip_bad_rows)
        tell_beside(notes)
        return Corpus(texts, None)
    rows = _file_rows(file, "--file", columns)
    tell_beside(rows.notes)
    return Corpus(rows.texts, rows.classes(model, "class"))


def labelled_texts(model: "LexicalSAE", data: str, columns: Columns) -> "tuple[TextSplit, tuple[str, ...]]":
    """Texts of a file, or test texts of a named set, labelled as the model numbers its classes; notes on guesses."""
    from splade.data.examples import TextSplit
    from splade.data.registry import TEXT_DATASETS

    is_named = data in TEXT_DATASETS
    rows = _test_rows(data, columns) if is_named else _file_rows(data, "data", columns)
    return TextSplit(tuple(rows.texts), tuple(rows.classes(model, f"{data}: label"))), rows.notes


@dataclass(frozen=True)
class _Rows:
    """Texts with their labels as they are written, and what was guessed about them."""

    texts: "Sequence[str]"
    labels: "Sequence[str]"
    notes: tuple[str, ...]

    def classes(self, model: "LexicalSAE", source: str) -> list[int]:
        """The labels as the model numbers its classes; `source` is named in errors."""
        from splade.inference.labels import label_index, labels_of

        names = labels_of(model)
        place = {name: label_index(names, name, source) for name in dict.fromkeys(self.labels)}
        return [place[name] for name in self.labels]


def _test_rows(data: str, columns: Columns) -> _Rows:
    from splade.data import load_text_dataset

    if columns.text or columns.label:
        raise ValueError(f"--text-column and --label-column are for files; {data} has columns of its own")
    dataset = load_text_dataset(data)
    return _Rows(dataset.test.texts, [dataset.label_names[label] for label in dataset.test.labels], dataset.notes)


def _file_rows(file: str | Path, source: str, columns: Columns) -> _Rows:
    from splade.data.files import as_table
    from splade.data.rows import choose_columns, labelled_rows

    table = as_table(file, source)
    text, label, guesses = choose_columns(table, columns.text, columns.label)
    rows = labelled_rows(table, text, label, skip_bad_rows=columns.skip_bad_rows)
    return _Rows(rows.texts, list(rows.labels), (*guesses, *rows.notes))


def tell_beside(notes: "Sequence[str]") -> None:
    """Notes on standard error, so that the result alone can be piped."""
    from splade.report.printable import shown

    for note in notes:
        typer.echo(shown(note), err=True)


def progress_beside() -> Any:
    """Bars on standard error, so that the result alone can be piped."""
    from splade.report.progress import ProgressBars

    return ProgressBars(Console(stderr=True))
