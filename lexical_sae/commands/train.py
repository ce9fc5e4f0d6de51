"""Train a classifier, and show what it learned: the commands `train` and `quickstart`."""

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from lexical_sae.commands.console import console, training_together, watching
from lexical_sae.commands.options import (
    RECIPES,
    TARGETS,
    Device,
    LabelColumns,
    LabelSeparator,
    SkipBadRows,
    listed,
    require_choice,
    require_file,
)
from lexical_sae.utils.errors import SettingsError

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from lexical_sae.config.schema import ExperimentConfig
    from lexical_sae.runs import Run

Baselines = Annotated[
    bool,
    typer.Option(
        help="Compare with TF-IDF and with the encoder as published, each with logistic regression, on the same rows."
    ),
]
QUICKSTART = "quickstart"
"""Name of the experiment; only a run of this name is replaced."""
QUICK_TEXTS = 200
"""Test texts of its evaluation, which is to take seconds."""


def train(
    data: Annotated[
        str | None,
        typer.Argument(
            help="A data set by name (docs/data.md), or your own file: CSV, JSON, Parquet, Excel, …", show_default=False
        ),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Experiment file (YAML); see docs/configuration.md.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the run; the model goes to its folder `model`.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume a run that was interrupted, from its last checkpoint.")
    ] = False,
    recipe: Annotated[
        str | None,
        typer.Option(
            help="anchored (the default), one of the papers' (cajt, cis, lexical_sae, transcoder), or neighbours."
        ),
    ] = None,
    table_only: Annotated[
        bool,
        typer.Option(
            "--table-only",
            help="Leave context out: a table with one weight per word and class, in about a minute. Every word "
            "contributes the same in every text.",
        ),
    ] = False,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Let every class count the same, however rare (training.class_weight).")
    ] = False,
    text_column: Annotated[str | None, typer.Option(help="Column with the text; inferred when not given.")] = None,
    label_column: Annotated[str | None, typer.Option(help="Column with the label; inferred when not given.")] = None,
    label_columns: LabelColumns = None,
    label_separator: LabelSeparator = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="What a text has: classes (one label), labels (any number of them) or number. Never guessed: 1 to 5 "
            "are classes unless you say number."
        ),
    ] = None,
    skip_bad_rows: SkipBadRows = False,
    unlabelled: Annotated[
        Path | None,
        typer.Option(
            help="A file of further texts without labels, which say what words mean: worth it where labels are few."
        ),
    ] = None,
    baselines: Baselines = True,
    device: Device = "auto",
) -> None:
    """Train a classifier on a data set or your own file.

    Example: lexical-sae train tickets.csv --out results/tickets

    Any number of labels per text: lexical-sae train comments.csv --label-columns toxic,threat,insult

    A number per text: lexical-sae train reviews.csv --label-column stars --target number

    Few labels, many texts: lexical-sae train labelled.csv --unlabelled archive.csv
    """
    if (data is None) == (config is None):
        raise SettingsError(
            "give either a data set (`lexical-sae train reviews.csv`) or an experiment (`--config FILE`)"
        )
    require_file(data)
    require_file(config, "experiment file")
    require_file(unlabelled)
    require_choice("--recipe", recipe, RECIPES)
    require_choice("--target", target, TARGETS)
    columns = {"text_column": text_column, "label_column": label_column, "label_columns": listed(label_columns)}
    columns |= {"label_separator": label_separator, "target": target}
    if config is not None and (any(columns.values()) or skip_bad_rows or recipe):
        raise SettingsError(f"with --config, set recipe, {', '.join(columns)} and skip_bad_rows in {config}")
    from lexical_sae.config.load import build_config, load_config

    if config is not None:
        settings = load_config(config)
    else:
        name = Path(str(data)).stem
        source = {"dataset_name": data, **columns, "skip_bad_rows": skip_bad_rows}
        settings = build_config(
            {
                "experiment_name": name,
                "output_dir": f"results/{name}",
                **({} if recipe is None else {"recipe": recipe}),
                "data": source,
            }
        )
    if table_only:
        settings = without_context(settings)
    if unlabelled is not None:
        data_settings = settings.data.model_copy(update={"unlabelled": str(unlabelled)})
        settings = settings.model_copy(update={"data": data_settings})
    if balanced:
        training = settings.training.model_copy(update={"class_weight": "balanced"})
        settings = settings.model_copy(update={"training": training})
    if out is not None:
        settings = settings.model_copy(update={"output_dir": str(out)})
    train_and_show(settings, device, resume=resume, baselines=baselines)


def without_context(config: "ExperimentConfig") -> "ExperimentConfig":
    """The experiment with every word at its default, whatever the text."""
    if config.model.literal is None:
        raise SettingsError(f"recipe {config.recipe} has no table of words; --table-only is for the recipe anchored")
    return config.model_copy(update={"model": config.model.model_copy(update={"context": None})})


def train_and_show(config: "ExperimentConfig", device: str, *, resume: bool, baselines: bool) -> None:
    """Train with every seed, evaluate, print the scores beside cheap baselines, and show three explained texts."""
    from lexical_sae import runs
    from lexical_sae.models.bundled import BUNDLED
    from lexical_sae.report.context import main_context_rows
    from lexical_sae.report.terminal import figures_table, mean_figures, name_figures, score_figures
    from lexical_sae.runs.inputs import output_of

    heading = f"{config.experiment_name}: {config.data.dataset_name} with {config.model.name}, recipe {config.recipe}"
    with training_together(device) as is_first:
        console.print(Text(heading, style="bold"))
        if encoder := BUNDLED.get(config.model.name):
            size = f"(the first time, the encoder is downloaded: about {encoder.megabytes} MB)"
            console.print(Text(size, style="dim"))
        with watching() as watchers:
            run = runs.train_run(runs.Run.of(config, device), resume=resume, watchers=watchers)
    if not is_first:
        return
    results = run.results
    for one in results.get("runs", [results]):
        console.print(figures_table(*score_figures(one)))
    if "mean" in results:
        console.print(figures_table(*mean_figures(results)))
    if "mean" not in results and (names := run.names_on(1)):
        heading, rows = name_figures("model", names["model"])
        context = names["model"].get("context")
        console.print(figures_table(heading, [*rows[:2], *(main_context_rows(context) if context else ())]))
    if baselines and config.evaluation.after_training:
        _show_baselines(run)
    console.print(Text(f"everything is in {config.output_dir}", style="dim"))
    _show_three(run)
    _leave_report(run)
    console.print(_next_steps(run.folder, is_of_classes=output_of(config) == TARGETS[0]))


def _show_baselines(run: "Run") -> None:
    """What takes no training, on the same rows. The run is safe by now, so whatever goes wrong is only reported."""
    from lexical_sae import runs
    from lexical_sae.report.printable import shown
    from lexical_sae.report.progress import ProgressBars
    from lexical_sae.report.terminal import baseline_figures, figures_table

    try:
        with ProgressBars(console) as bars:
            found = runs.baselines_beside(run, on_step=bars)
    except Exception as error:
        message = f"there are no baselines beside it ({type(error).__name__}: {error})"
        console.print(Text(shown(message), style="yellow"), soft_wrap=True)
    else:
        console.print(figures_table(*baseline_figures(found)))


def _show_three(run: "Run") -> None:
    from lexical_sae import inference
    from lexical_sae.report.explanation.terminal import explanation_panel

    model, dataset = run.model_and_data()
    test = dataset.test
    short = [row for row, text in enumerate(test.texts) if 40 <= len(text) <= 240] or range(len(test))
    # One of each class first, so that not all three are of a kind.
    strata = test.strata()
    first_of_class = {strata[row]: row for row in reversed(short)}
    chosen = dict.fromkeys([*first_of_class.values(), *short])
    rows = list(chosen)[:3]
    explanations = inference.explain(model, [test.texts[row] for row in rows], causes=True)
    for row, explanation in zip(rows, explanations, strict=True):
        (labelled,) = model.output.labelled([test.labels[row]], dataset.label_names)
        console.print(explanation_panel(explanation, labelled=labelled))


def _leave_report(run: "Run") -> None:
    """Write the run's page. The run is safe by now, so whatever goes wrong here is only reported."""
    from lexical_sae.report.printable import shown
    from lexical_sae.report.progress import ProgressBars

    again = f"write it again with: lexical-sae report {shlex.quote(str(run.folder))}"
    try:
        with ProgressBars(console) as bars:
            written, _ = run.report(on_step=bars)
    except Exception as error:
        message = f"the run is complete, but its report could not be written ({type(error).__name__}: {error}); {again}"
        console.print(Text(shown(message), style="yellow"), soft_wrap=True)
    else:
        console.print(Text.assemble("Report, to open in a browser: ", (shown(str(written)), "bold")), soft_wrap=True)


def _next_steps(run: Path, *, is_of_classes: bool) -> Text:
    beside = Path(sys.executable).parent / "lexical-sae"
    command = "lexical-sae" if shutil.which("lexical-sae") else shlex.quote(str(beside))
    explore = ("\nRead, question and edit it in the browser: ", (f"{command} explore {shlex.quote(str(run))}", "bold"))
    names = ("\nDo its names hold? ", (f"{command} names {shlex.quote(str(run))}", "bold"))
    return Text.assemble(
        *(explore if is_of_classes else ()),
        "\nTry your own: ",
        (f'{command} explain {shlex.quote(str(run))} "your sentence here"', "bold"),
        *(names if is_of_classes else ()),
        "\nYour own data: ",
        (f"{command} train your.csv --out results/yours", "bold"),
    )


def quickstart(
    out: Annotated[Path, typer.Option(help="Folder for the run; an earlier quick start there is replaced.")] = Path(
        "results/quickstart"
    ),
    device: Device = "auto",
) -> None:
    """Train a movie-review classifier in a few minutes and explain three reviews it has never seen."""
    from lexical_sae.config.load import build_config
    from lexical_sae.runs.folder import clear_run
    from lexical_sae.utils.device import resolve_device

    settings = {
        "experiment_name": QUICKSTART,
        "output_dir": str(out),
        "data": {"dataset_name": "movie_snippets"},
        "evaluation": {"texts": QUICK_TEXTS},
    }
    config = build_config(settings)
    resolve_device(device)
    clear_run(out, only=QUICKSTART)
    train_and_show(config, device, resume=False, baselines=True)
