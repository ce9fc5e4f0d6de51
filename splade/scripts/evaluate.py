"""Everything measured of a model on labelled texts: `lexical-sae evaluate MODEL data.csv`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from splade.scripts.console import console, errors_as_sentences

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from splade.data.examples import TextSplit
    from splade.models.lexical_sae import LexicalSAE

EVALUATION = "evaluation.json"


def evaluate(
    model: Annotated[Path, typer.Argument(help="Folder of a saved model.")],
    data: Annotated[str, typer.Argument(help="Labelled texts: a CSV, TSV or JSONL file, or a data set's name.")],
    out: Annotated[
        Path | None, typer.Option(help="File to write; by default evaluation.json beside the model.")
    ] = None,
    texts: Annotated[int, typer.Option(help="Most texts to read, drawn by lot; 0 reads all.", min=0)] = 0,
    text_column: Annotated[str | None, typer.Option(help="Column with the text; guessed when not given.")] = None,
    label_column: Annotated[str | None, typer.Option(help="Column with the label; guessed when not given.")] = None,
    skip_bad_rows: Annotated[
        bool, typer.Option("--skip-bad-rows", help="Leave out rows without text or label.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of all that is drawn by lot.", min=0)] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Measure a model on labelled texts: accuracy, and whether its explanations can be trusted, beside controls.

    Example: lexical-sae evaluate results/quickstart/model reviews.csv

    Use texts that the model was not trained on. Of a data set that is given by name the test texts are read.
    """
    from splade.device import resolve_device
    from splade.evaluation.suite import EvaluationSettings
    from splade.evaluation.suite import evaluate as measure
    from splade.models.persistence import from_pretrained
    from splade.report.evaluation_terminal import evaluation_view
    from splade.report.progress import ProgressBars
    from splade.training.run_folder import write_json

    chosen = resolve_device(device)
    loaded = from_pretrained(model).to(chosen)
    split, notes = labelled_texts(loaded, data, text_column, label_column, skip_bad_rows=skip_bad_rows)
    for note in notes:
        console.print(Text(note, style="dim"))
    if texts and texts < len(split):
        split = _draw(split, texts, seed)
    with ProgressBars(Console(stderr=True)) as bars:
        results = measure(loaded, split, EvaluationSettings(seed=seed), bars)
    found = {"model": str(model), "data": data, **results.as_dict()}
    console.print(evaluation_view(found))
    written = write_json(out or model.resolve().parent / EVALUATION, found)
    console.print(Text(f"written to {written}", style="dim"))


def labelled_texts(
    model: "LexicalSAE", data: str, text_column: str | None, label_column: str | None, *, skip_bad_rows: bool = False
) -> "tuple[TextSplit, tuple[str, ...]]":
    """Texts of a file, or test texts of a named set, labelled as the model numbers its classes; notes on guesses."""
    from splade.data import load_text_dataset
    from splade.data.examples import TextSplit
    from splade.data.files import as_table
    from splade.data.registry import TEXT_DATASETS
    from splade.data.rows import choose_columns, labelled_rows
    from splade.inference.labels import label_index, labels_of

    if data in TEXT_DATASETS:
        if text_column or label_column:
            raise ValueError(f"--text-column and --label-column are for files; {data} has columns of its own")
        dataset = load_text_dataset(data)
        texts, notes = dataset.test.texts, dataset.notes
        written = [dataset.label_names[label] for label in dataset.test.labels]
    else:
        table = as_table(data, "data")
        text, label, guesses = choose_columns(table, text_column, label_column)
        rows = labelled_rows(table, text, label, skip_bad_rows=skip_bad_rows)
        texts, written, notes = rows.texts, list(rows.labels), (*guesses, *rows.notes)
    names = labels_of(model)
    place = {name: label_index(names, name, f"{data}: label") for name in dict.fromkeys(written)}
    return TextSplit(tuple(texts), tuple(place[name] for name in written)), notes


def _draw(split: "TextSplit", count: int, seed: int) -> "TextSplit":
    import numpy as np

    return split.take(sorted(np.random.default_rng(seed).permutation(len(split))[:count].tolist()))


if __name__ == "__main__":
    with errors_as_sentences():
        typer.run(evaluate)
