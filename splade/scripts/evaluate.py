"""Everything measured of a model on labelled texts: `lexical-sae evaluate MODEL data.csv`."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from splade.scripts.console import console, run_command
from splade.scripts.corpus import Columns, LabelColumn, SkipBadRows, TextColumn, progress_beside
from splade.scripts.unseen_texts import unseen_texts

NAMED = "names"
"""Where an evaluation keeps what names came to."""


def evaluate(
    model: Annotated[Path, typer.Argument(help="Folder of a saved model.")],
    data: Annotated[str, typer.Argument(help="Labelled texts: a CSV, TSV or JSONL file, or a data set's name.")],
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write; by default evaluation.json beside the model, or evaluation-NAME.json where that "
            "belongs to the test texts of a run."
        ),
    ] = None,
    texts: Annotated[int, typer.Option(help="Most texts to read, drawn by lot; 0 reads all.", min=0)] = 0,
    names_texts: Annotated[
        int, typer.Option(help="Of these, so many to try on whether words mean what they say; 0 leaves it out.", min=0)
    ] = 100,
    explainer_texts: Annotated[
        int, typer.Option(help="How many of these to compare attribution methods on; 0 leaves it out.", min=0)
    ] = 10,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    skip_bad_rows: SkipBadRows = False,
    seed: Annotated[int, typer.Option(help="Seed of all that is drawn by lot.", min=0)] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Measure a model on labelled texts: accuracy, whether its explanations are true and its words mean what they say.

    Example: lexical-sae evaluate results/quickstart/model reviews.csv

    Of a data set that is given by name the test texts are read. Texts that the model's run learned from are left out;
    of a model without its run nobody knows them, so use texts that it was not trained on.
    """
    from splade.device import resolve_device
    from splade.evaluation.names import measure_names
    from splade.evaluation.suite import EvaluationSettings
    from splade.evaluation.suite import evaluate as measure
    from splade.files import require_writable_target
    from splade.models.persistence import from_pretrained
    from splade.pipelines.evaluating import TEST
    from splade.pipelines.inputs import draw
    from splade.report.evaluation_terminal import evaluation_view
    from splade.report.printable import shown
    from splade.report.terminal import figures_table, name_figures
    from splade.training.run_folder import CONFIG, EVALUATION, OTHER_EVALUATIONS, write_json

    if out is not None:
        require_writable_target(out, reads=[Path(data).expanduser()])
    chosen = resolve_device(device)
    loaded = from_pretrained(model).to(chosen)
    folder, columns = model.resolve().parent, Columns(text_column, label_column, True, skip_bad_rows)
    unseen = unseen_texts(loaded, folder, data, columns)
    for note in unseen.notes:
        console.print(Text(note, style="dim"))
    if unseen.warning:
        console.print(Text(shown(unseen.warning), style="bold yellow"), soft_wrap=True)
    is_other = (folder / CONFIG).is_file() and unseen.tested is None
    target = out or folder / (OTHER_EVALUATIONS.replace("*", Path(data).stem) if is_other else EVALUATION)
    require_writable_target(target)
    settings, about = (
        EvaluationSettings(explainer_texts=explainer_texts, seed=seed),
        {"model": str(model), "data": data},
    )
    if unseen.tested:
        settings = replace(settings, circuit_fraction=unseen.tested.mechanistic.circuit_fraction)
        about |= {"split": TEST, "most_texts": texts}
    chosen_texts = draw(unseen.split, texts, seed)
    with progress_beside() as bars:
        found = {**about, **measure(loaded, chosen_texts, settings, bars).as_dict()}
        if names_texts:
            found[NAMED] = measure_names(
                loaded, chosen_texts.texts, unseen.trained_on, seed, names_texts, bars
            ).as_dict()
    console.print(evaluation_view(found))
    if names_texts:
        console.print(figures_table(*name_figures("model", found[NAMED])))
    written = write_json(target, found)
    console.print(Text(shown(f"written to {written}"), style="dim"), soft_wrap=True)


if __name__ == "__main__":
    run_command(evaluate)
