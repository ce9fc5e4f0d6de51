"""Everything measured of a model on labelled texts: `lexical-sae evaluate MODEL data.csv`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from splade.scripts.console import console, errors_as_sentences
from splade.scripts.corpus import Columns, LabelColumn, TextColumn, labelled_texts, progress_beside


def evaluate(
    model: Annotated[Path, typer.Argument(help="Folder of a saved model.")],
    data: Annotated[str, typer.Argument(help="Labelled texts: a CSV, TSV or JSONL file, or a data set's name.")],
    out: Annotated[
        Path | None, typer.Option(help="File to write; by default evaluation.json beside the model.")
    ] = None,
    texts: Annotated[int, typer.Option(help="Most texts to read, drawn by lot; 0 reads all.", min=0)] = 0,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
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
    from splade.pipelines.inputs import draw
    from splade.report.evaluation_terminal import evaluation_view
    from splade.training.run_folder import EVALUATION, write_json

    chosen = resolve_device(device)
    loaded = from_pretrained(model).to(chosen)
    split, notes = labelled_texts(
        loaded, data, Columns(text_column, label_column, is_labelled=True), skip_bad_rows=skip_bad_rows
    )
    for note in notes:
        console.print(Text(note, style="dim"))
    with progress_beside() as bars:
        results = measure(loaded, draw(split, texts, seed), EvaluationSettings(seed=seed), bars)
    found = {"model": str(model), "data": data, **results.as_dict()}
    console.print(evaluation_view(found))
    written = write_json(out or model.resolve().parent / EVALUATION, found)
    console.print(Text(f"written to {written}", style="dim"))


if __name__ == "__main__":
    with errors_as_sentences():
        typer.run(evaluate)
