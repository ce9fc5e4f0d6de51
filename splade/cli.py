"""`lexical-sae`: one command with sub-commands."""

from pathlib import Path
from typing import Annotated

import typer

import splade
from splade.scripts.console import console, errors_as_sentences
from splade.scripts.fit_lexical_head import fit_lexical_head
from splade.scripts.run_baselines import baselines
from splade.scripts.run_experiment import train, train_and_show
from splade.scripts.run_names import names
from splade.scripts.run_sweep import sweep

QUICKSTART = "quickstart"
"""Name of the experiment; only a run of this name is replaced."""

app = typer.Typer(
    name="lexical-sae",
    help="Text classifiers whose features are words: train one, and see exactly why it decides.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def about(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        console.print(f"lexical-sae {splade.__version__}", highlight=False)
        raise typer.Exit


@app.command()
def quickstart(
    out: Annotated[Path, typer.Option(help="Folder for the run; an earlier quick start there is replaced.")] = Path(
        "results/quickstart"
    ),
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Train a movie-review classifier in a few minutes and explain three reviews it has never seen."""
    from splade.config.load import build_config
    from splade.device import resolve_device
    from splade.training.run_folder import clear_run

    settings = {"experiment_name": QUICKSTART, "output_dir": str(out), "data": {"dataset_name": "movie_snippets"}}
    config = build_config(settings)
    resolve_device(device)
    clear_run(out, only=QUICKSTART)
    train_and_show(config, device, resume=False)


app.command()(train)


@app.command()
def explain(
    model: Annotated[Path, typer.Argument(help="Folder of a saved model.")],
    texts: Annotated[list[str], typer.Argument(help="One or more texts, each in quotes.")],
    top: Annotated[int, typer.Option(help="How many words to show.", min=1)] = 8,
) -> None:
    """Show the label of each text, the words that speak most for and against it, and how they sum to the decision.

    Example: lexical-sae explain results/quickstart/model "a warm and funny film"

    A text that begins with a dash goes after two dashes: lexical-sae explain MODEL -- "-- what a film"
    """
    from splade import inference
    from splade.models.persistence import from_pretrained
    from splade.report.terminal import explanation_panel

    for explanation in inference.explain(from_pretrained(model), texts):
        console.print(explanation_panel(explanation, top))


app.command()(baselines)
app.command()(names)
app.command()(sweep)
app.command()(fit_lexical_head)


def main() -> None:
    """Run the command line."""
    with errors_as_sentences():
        app()
