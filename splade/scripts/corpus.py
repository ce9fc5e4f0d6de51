"""The texts that a command is asked to read: the options that name them, and the reading."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from splade.scripts.given_texts import read_texts

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from collections.abc import Sequence

    from splade.models.lexical_sae import LexicalSAE

File = Annotated[Path | None, typer.Option(help="Your texts: a CSV, TSV or JSONL file.")]
Named = Annotated[str | None, typer.Option(help="A data set by name (docs/data.md); its test texts are read.")]
TextColumn = Annotated[str | None, typer.Option(help="Column with the text; guessed when not given.")]
LabelColumn = Annotated[str | None, typer.Option(help="Column with the label; guessed when not given.")]


@dataclass(frozen=True)
class Columns:
    """Which columns hold what, and whether labels are wanted at all."""

    text: str | None
    label: str | None
    is_labelled: bool


@dataclass(frozen=True)
class Corpus:
    """Texts, with their classes where those were asked for."""

    texts: "Sequence[str]"
    labels: "list[int] | None"
    """As the model numbers its classes; None where the model's own decision counts."""


def load_corpus(model: "LexicalSAE", file: Path | None, data: str | None, columns: Columns) -> Corpus:
    """The texts that were asked for, with their classes if those were asked for too."""
    from splade.data import load_text_dataset
    from splade.data.files import as_table
    from splade.data.rows import choose_columns, labelled_rows
    from splade.inference.labels import label_index, labels_of

    if (file is None) == (data is None):
        raise ValueError("give either your texts (--file texts.csv) or a data set by name (--data sst2)")
    if data is not None:
        if columns.text or columns.label:
            raise ValueError(f"--text-column and --label-column are for --file; {data} has columns of its own")
        dataset = load_text_dataset(data)
        texts, written = dataset.test.texts, [dataset.label_names[label] for label in dataset.test.labels]
    else:
        assert file is not None
        if not columns.is_labelled:
            return Corpus(read_texts(file, columns.text), None)
        table = as_table(file, "--file")
        text, label, _ = choose_columns(table, columns.text, columns.label)
        rows = labelled_rows(table, text, label, skip_bad_rows=False)
        texts, written = rows.texts, list(rows.labels)
    if not columns.is_labelled:
        return Corpus(texts, None)
    names = labels_of(model)
    place = {name: label_index(names, name, "class") for name in dict.fromkeys(written)}
    return Corpus(texts, [place[name] for name in written])


def progress_beside() -> Any:
    """Bars on standard error, so that the result alone can be piped."""
    from splade.report.progress import ProgressBars

    return ProgressBars(Console(stderr=True))
