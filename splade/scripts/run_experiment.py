"""Train with every seed of an experiment: `python -m splade.scripts.run_experiment --config FILE`.

The same as `lexical-sae train`.
"""

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from splade.scripts.console import console, run_command
from splade.scripts.corpus import SkipBadRows
from splade.scripts.watching import watching

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from splade.config.schema import ExperimentConfig


def train(
    data: Annotated[
        str | None,
        typer.Argument(
            help="A data set by name (docs/data.md), or your own CSV, TSV or JSONL file.", show_default=False
        ),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Experiment file (YAML); see docs/configuration.md.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the run; the model goes to its folder `model`.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a run that was interrupted, from its last checkpoint.")
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
    text_column: Annotated[str | None, typer.Option(help="Column with the text; guessed when not given.")] = None,
    label_column: Annotated[str | None, typer.Option(help="Column with the label; guessed when not given.")] = None,
    skip_bad_rows: SkipBadRows = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Train a classifier on a data set or your own file.

    Example: lexical-sae train tickets.csv --out results/tickets
    """
    from splade.config.load import build_config, load_config

    if (data is None) == (config is None):
        raise ValueError("give either a data set (`lexical-sae train reviews.csv`) or an experiment (`--config FILE`)")
    if config is not None:
        if text_column or label_column or skip_bad_rows or recipe:
            raise ValueError(f"with --config, say recipe, text_column, label_column and skip_bad_rows in {config}")
        settings = load_config(config)
    else:
        name = Path(str(data)).stem
        columns = {"text_column": text_column, "label_column": label_column}
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
    if out is not None:
        settings = settings.model_copy(update={"output_dir": str(out)})
    train_and_show(settings, device, resume=resume)


def without_context(config: "ExperimentConfig") -> "ExperimentConfig":
    """The experiment with every word at its default, whatever the text."""
    if config.model.literal is None:
        raise ValueError(f"recipe {config.recipe} has no table of words; --table-only is for the recipe anchored")
    return config.model_copy(update={"model": config.model.model_copy(update={"context": None})})


def train_and_show(config: "ExperimentConfig", device: str, *, resume: bool) -> None:
    """Train with every seed, evaluate, print the scores, and show three explained texts."""
    from splade.pipelines import model_folder, run_experiment
    from splade.pipelines.naming import read_names
    from splade.report.context_terminal import main_context_rows
    from splade.report.terminal import figures_table, mean_figures, name_figures, score_figures
    from splade.training.run_folder import NAMES

    heading = f"{config.experiment_name}: {config.data.dataset_name} with {config.model.name}, recipe {config.recipe}"
    console.print(Text(heading, style="bold"))
    if config.model.name.startswith("bundled:"):
        console.print(Text("(the first time, the encoder is downloaded: about 90 MB)", style="dim"))
    with watching() as watchers:
        results = run_experiment(config, resume=resume, device=device, watchers=watchers)
    for run in results.get("runs", [results]):
        console.print(figures_table(*score_figures(run)))
    if "mean" in results:
        console.print(figures_table(*mean_figures(results)))
    model = model_folder(config)
    if "mean" not in results and (names := read_names(model.parent / NAMES, 1)):
        heading, rows = name_figures("model", names["model"])
        context = names["model"].get("context")
        console.print(figures_table(heading, [*rows[:2], *(main_context_rows(context) if context else ())]))
    console.print(Text(f"everything is in {config.output_dir}", style="dim"))
    _show_three(config, model)
    _leave_report(Path(config.output_dir))
    console.print(_next_steps(model, Path(config.output_dir)))


def _show_three(config: "ExperimentConfig", folder: Path) -> None:
    from splade import inference
    from splade.models.persistence import from_pretrained
    from splade.pipelines import load_data
    from splade.report.explanation_terminal import explanation_panel

    dataset = load_data(config, config.evaluation.seeds[0])
    test = dataset.test
    short = [row for row, text in enumerate(test.texts) if 40 <= len(text) <= 240] or range(len(test))
    # One of each class first, so that not all three are of a kind.
    first_of_class = {test.labels[row]: row for row in reversed(short)}
    chosen = dict.fromkeys([*first_of_class.values(), *short])
    rows = list(chosen)[:3]
    explanations = inference.explain(from_pretrained(folder), [test.texts[row] for row in rows], causes=True)
    for row, explanation in zip(rows, explanations, strict=True):
        console.print(explanation_panel(explanation, labelled=dataset.label_names[test.labels[row]]))


def _leave_report(run: Path) -> None:
    """Write the run's page. The run is safe by now, so whatever goes wrong here is told and no more."""
    from splade.report.printable import shown
    from splade.report.progress import ProgressBars
    from splade.scripts.report import write_report

    again = f"write it again with: lexical-sae report {shlex.quote(str(run))}"
    try:
        with ProgressBars(console) as bars:
            written, _ = write_report(run, on_step=bars)
    except Exception as error:
        told = f"the run is complete, but its report could not be written ({type(error).__name__}: {error}); {again}"
        console.print(Text(shown(told), style="yellow"), soft_wrap=True)
    else:
        console.print(Text.assemble("Report, to open in a browser: ", (shown(str(written)), "bold")), soft_wrap=True)


def _next_steps(model: Path, run: Path) -> Text:
    beside = Path(sys.executable).parent / "lexical-sae"
    command = "lexical-sae" if shutil.which("lexical-sae") else shlex.quote(str(beside))
    return Text.assemble(
        "\nTry your own: ",
        (f'{command} explain {shlex.quote(str(model))} "your sentence here"', "bold"),
        "\nAre its words true? ",
        (f"{command} names --config {shlex.quote(str(run / 'resolved_config.yaml'))}", "bold"),
        "\nYour own data: ",
        (f"{command} train your.csv --out results/yours", "bold"),
    )


if __name__ == "__main__":
    run_command(train)
