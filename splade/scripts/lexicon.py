"""A model over a corpus (`lexical-sae lexicon`), and two models over the same one (`lexical-sae diff`)."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from splade.scripts.console import console, errors_as_sentences

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from collections.abc import Sequence

    from splade.data.table import Table
    from splade.models.lexical_sae import LexicalSAE

File = Annotated[Path | None, typer.Option(help="Your texts: a CSV, TSV or JSONL file.")]
Named = Annotated[str | None, typer.Option(help="A data set by name (docs/data.md); its test texts are read.")]
TextColumn = Annotated[str | None, typer.Option(help="Column with the text; guessed when not given.")]
LabelColumn = Annotated[str | None, typer.Option(help="Column with the label; guessed when not given.")]
Labelled = Annotated[
    bool, typer.Option("--labelled", help="Count texts under their given label, not under the model's decision.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON instead of tables.")]


def lexicon(
    model: Annotated[Path, typer.Argument(help="Folder of a saved model.")],
    file: File = None,
    data: Named = None,
    label: Annotated[str | None, typer.Option("--class", help="Show this class only.")] = None,
    word: Annotated[str | None, typer.Option(help="Show the page of this word instead.")] = None,
    top: Annotated[int, typer.Option(help="How many words (with --word: texts) to show.", min=1)] = 20,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    labelled: Labelled = False,
    as_json: AsJson = False,
) -> None:
    """Show which words speak for and against each class over a corpus, or all about one word.

    Example: lexical-sae lexicon results/quickstart/model --data movie_snippets --word boring
    """
    from splade.evaluation.collect import collect
    from splade.evaluation.features import FeatureCollector
    from splade.evaluation.survey import survey
    from splade.models.lexical_sae import CLASSIFY
    from splade.models.persistence import from_pretrained
    from splade.report.lexicon_terminal import feature_panel, survey_view

    loaded = from_pretrained(model)
    chosen = None if label is None else [_known_label(label, loaded.labels[CLASSIFY])]
    pages = [FeatureCollector(loaded, i, top) for i in loaded.dimensions.find(word)] if word is not None else []
    corpus = _corpus(loaded, file, data, _Columns(text_column, label_column, labelled))
    with _progress() as bars:
        if pages:
            collect(loaded, corpus.texts, pages, corpus.labels, on_step=bars)
            found: dict[str, Any] = {"pages": [page.page().as_dict() for page in pages]}
        else:
            found = survey(loaded, corpus.texts, corpus.labels, top=top, on_step=bars).as_dict()
    if chosen is not None and not pages:
        found["lexicon"]["classes"] = [own for own in found["lexicon"]["classes"] if own["label"] in chosen]
        found["weights"] = {name: words for name, words in found["weights"].items() if name in chosen}
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    elif pages:
        for page in found["pages"]:
            console.print(feature_panel(page))
    else:
        console.print(survey_view(found, chosen))


def diff(
    before: Annotated[Path, typer.Argument(help="Folder of the first saved model.")],
    after: Annotated[Path, typer.Argument(help="Folder of the second saved model.")],
    file: File = None,
    data: Named = None,
    top: Annotated[int, typer.Option(help="How many words and flipped texts to show.", min=1)] = 20,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    labelled: Labelled = False,
    as_json: AsJson = False,
) -> None:
    """Show what the second model does differently: words gained and lost, decisions flipped, and the words behind them.

    Example: lexical-sae diff results/old/model results/new/model --file texts.csv
    """
    from splade.evaluation.diff import diff_models
    from splade.models.persistence import from_pretrained
    from splade.report.lexicon_terminal import diff_view

    old, new = from_pretrained(before), from_pretrained(after)
    corpus = _corpus(old, file, data, _Columns(text_column, label_column, labelled))
    with _progress() as bars:
        found = diff_models(old, new, corpus.texts, corpus.labels, top=top, max_flips=top, on_step=bars).as_dict()
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        console.print(diff_view(found))


@dataclass(frozen=True)
class _Columns:
    text: str | None
    label: str | None
    is_labelled: bool


@dataclass(frozen=True)
class _Corpus:
    texts: "Sequence[str]"
    labels: "list[int] | None"
    """As the model numbers its classes; None where the model's own decision counts."""


def _progress() -> Any:
    from splade.report.progress import ProgressBars

    # Beside the result, so that the result alone can be piped.
    return ProgressBars(Console(stderr=True))


def _corpus(model: "LexicalSAE", file: Path | None, data: str | None, columns: _Columns) -> _Corpus:
    """The texts that were asked for, with their classes if those were asked for too."""
    from splade.data import load_text_dataset
    from splade.data.files import as_table
    from splade.data.rows import choose_columns, labelled_rows
    from splade.models.lexical_sae import CLASSIFY

    if (file is None) == (data is None):
        raise ValueError("give either your texts (--file texts.csv) or a data set by name (--data sst2)")
    if data is not None:
        if columns.text or columns.label:
            raise ValueError(f"--text-column and --label-column are for --file; {data} has columns of its own")
        dataset = load_text_dataset(data)
        texts, written = dataset.test.texts, [dataset.label_names[label] for label in dataset.test.labels]
    else:
        table = as_table(file)
        if not columns.is_labelled:
            return _Corpus(_texts(table, columns.text), None)
        text, label, _ = choose_columns(table, columns.text, columns.label)
        rows = labelled_rows(table, text, label, skip_bad_rows=False)
        texts, written = rows.texts, list(rows.labels)
    if not columns.is_labelled:
        return _Corpus(texts, None)
    names = model.labels[CLASSIFY]
    place = {name: names.index(_known_label(name, names)) for name in dict.fromkeys(written)}
    return _Corpus(texts, [place[name] for name in written])


def _texts(table: "Table", column: str | None) -> list[str]:
    """The texts of a table that need not have labels."""
    from splade.data.cells import text_problem
    from splade.data.rows import TEXT_NAMES, choose_columns

    if column is None:
        folded = {name.casefold(): name for name in reversed(list(table.columns))}
        known = next((folded[name] for name in TEXT_NAMES if name in folded), None)
        only = next(iter(table.columns)) if len(table.columns) == 1 else None
        column = known or only or choose_columns(table, None, None)[0]
    values = table.column(column)
    for row, value in enumerate(values):
        if problem := text_problem(value):
            raise ValueError(f"{table.place(row)}: {problem} in column {column!r}; fill it in or remove the row")
    return [str(value) for value in values]


def _known_label(name: str, names: "Sequence[str]") -> str:
    from splade.suggest import did_you_mean

    if name not in names:
        raise ValueError(f"the model has no class {name!r}{did_you_mean(name, names)} It has: {', '.join(names)}")
    return name


if __name__ == "__main__":
    with errors_as_sentences():
        typer.run(lexicon)
