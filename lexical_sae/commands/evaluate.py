"""What is measured of a model: everything (`evaluate`), its names (`names`), when to abstain (`calibrate`)."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from lexical_sae.commands.console import console
from lexical_sae.commands.options import (
    AllTokens,
    Config,
    Device,
    LabelColumn,
    LabelColumns,
    LabelSeparator,
    Model,
    Out,
    RunFolder,
    SkipBadRows,
    TextColumn,
    check_run,
    chosen_run,
    listed,
    progress,
    require_file,
    saved_model,
)
from lexical_sae.utils.files import require_writable_target


def evaluate(
    model: Model,
    data: Annotated[
        str,
        typer.Argument(help="Labelled texts: a data file (CSV, JSON, Parquet, Excel, …), or the name of a data set."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write; by default evaluation.json beside the model, or evaluation-NAME.json where that "
            "belongs to the test texts of a run."
        ),
    ] = None,
    texts: Annotated[int, typer.Option(help="Most texts to measure on, sampled at random; 0 takes all.", min=0)] = 0,
    names_texts: Annotated[
        int, typer.Option(help="How many of these to use for the name tests; 0 leaves them out.", min=0)
    ] = 100,
    explainer_texts: Annotated[
        int, typer.Option(help="How many of these to compare attribution methods on; 0 leaves it out.", min=0)
    ] = 10,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    label_columns: LabelColumns = None,
    label_separator: LabelSeparator = None,
    skip_bad_rows: SkipBadRows = False,
    seed: Annotated[int, typer.Option(help="Seed of all that is sampled at random.", min=0)] = 0,
    device: Device = "auto",
) -> None:
    """Measure a model on labelled texts: accuracy, faithfulness of its explanations, and name tests.

    Example: lexical-sae evaluate results/quickstart reviews.csv

    For a named data set, the test split is used. Texts that the model was trained on are left out; without its run
    folder this cannot be checked, so use texts that it was not trained on.
    """
    require_file(data)
    if out is not None:
        require_writable_target(out, reads=[Path(data).expanduser()])
    model = saved_model(model)
    from lexical_sae.evaluation.results import EvaluationResults
    from lexical_sae.evaluation.views.terminal import evaluation_view
    from lexical_sae.models.persistence import from_pretrained
    from lexical_sae.report.printable import shown
    from lexical_sae.report.terminal import figures_table, name_figures
    from lexical_sae.runs.folder import write_json
    from lexical_sae.runs.measuring.evaluating import NAMED, evaluate_on, evaluation_file
    from lexical_sae.runs.run import Run, find_run
    from lexical_sae.runs.texts import Columns
    from lexical_sae.runs.unseen import unseen_texts
    from lexical_sae.utils.device import resolve_device

    chosen = resolve_device(device)
    loaded, own = from_pretrained(model).to(chosen), find_run(model)
    run = None if own is None else Run(own, device=device)
    columns = Columns(text_column, label_column, True, skip_bad_rows, listed(label_columns), label_separator)
    unseen = unseen_texts(loaded, run, data, columns)
    for note in unseen.notes:
        console.print(Text(note, style="dim"))
    if unseen.warning:
        console.print(Text(shown(unseen.warning), style="bold yellow"), soft_wrap=True)
    target = out or evaluation_file(model, run, unseen, data)
    require_writable_target(target)
    with progress() as bars:
        found = evaluate_on(
            loaded,
            unseen,
            {"model": str(model), "data": data},
            texts=texts,
            names_texts=names_texts,
            explainer_texts=explainer_texts,
            seed=seed,
            on_step=bars,
        )
    console.print(evaluation_view(EvaluationResults.from_dict(found)))
    if NAMED in found:
        console.print(figures_table(*name_figures("model", found[NAMED])))
    written = write_json(target, found)
    console.print(Text(shown(f"written to {written}"), style="dim"), soft_wrap=True)


def names(
    run: RunFolder = None,
    config: Config = None,
    out: Out = None,
    texts: Annotated[int, typer.Option(help="Test texts to edit.", min=1)] = 200,
    words: Annotated[int, typer.Option(help="Strongest words to print per class.", min=1)] = 20,
    all_tokens: AllTokens = False,
    device: Device = "auto",
) -> None:
    """Test whether features mean their names: delete or replace a word, and see whether its feature follows.

    Example: lexical-sae names results/quickstart

    Training does so too, on 100 texts (evaluation.names_texts). Of several seeds the first one's model is tested.
    """
    check_run(run, config, out)
    from lexical_sae.report.context import context_figures
    from lexical_sae.report.progress import ProgressBars
    from lexical_sae.report.terminal import figures_table, name_figures, strongest_words_table
    from lexical_sae.runs import run_names
    from lexical_sae.runs.folder import NAMES

    opened = chosen_run(run, config, out, device)
    with ProgressBars(console) as bars:
        found = run_names(opened, texts=texts, words=words, on_step=bars, all_tokens=all_tokens)
    for title in ("model", "bag of words"):
        console.print(figures_table(*name_figures(title, found[title])))
        console.print(figures_table(*context_figures(title, found[title]["context"])))
    console.print(strongest_words_table(found["strongest_words"]))
    written = f"written to {opened.first.folder / NAMES}; `lexical-sae report {opened.folder}` shows it"
    console.print(Text(written, style="dim"))


def calibrate(
    model: Annotated[Path, typer.Argument(help="Folder of a run, or of the model in it.")],
    out: Annotated[Path | None, typer.Option(help="Folder for the calibrated model; by default the same.")] = None,
    false_alarms: Annotated[
        float, typer.Option(help="Share of validation texts that may get a warning.", min=0.0001, max=0.5)
    ] = 0.01,
) -> None:
    """Measure on validation texts when a model should warn or abstain, and save that with the model.

    Example: lexical-sae calibrate results/quickstart --false-alarms 0.02

    Training does this already; it is for models of earlier versions, for edited models, and for another share.
    """
    model = saved_model(model)
    from lexical_sae.intervene.lexicon import LEXICON_FILE, attached_lexicon
    from lexical_sae.models.persistence import from_pretrained, save_pretrained
    from lexical_sae.runs import Run, require_same_labels
    from lexical_sae.runs.calibrating import calibrate as measure
    from lexical_sae.runs.folder import CONFIG
    from lexical_sae.utils.errors import SavedFileError

    folder = model.resolve().parent
    if not (folder / CONFIG).is_file():
        raise SavedFileError(
            f"there is no {folder / CONFIG}, so the texts that the model was trained on are not known; give a model "
            "inside the folder of its run"
        )
    loaded, lexicon, dataset = from_pretrained(model), attached_lexicon(model), Run(folder).data
    require_same_labels(loaded, dataset)
    loaded.calibration = measure(loaded, dataset, false_alarms)
    written = save_pretrained(loaded, out or model, attached={LEXICON_FILE: lexicon.to_yaml()} if lexicon else None)
    console.print(Text(f"calibrated on {loaded.calibration.figures.texts} validation texts; written to {written}"))
