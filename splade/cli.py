"""`lexical-sae`: one command with sub-commands. The only place that prints."""

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

import splade

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from splade.config.schema import ExperimentConfig
    from splade.pipelines import TrainedRun

app = typer.Typer(
    name="lexical-sae",
    help="Text classifiers whose features are words: train one, and see exactly why it decides.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console()
USER_ERRORS = (ValueError, OSError, RuntimeError, FloatingPointError)
"""What a person can put right: shown as a sentence. Anything else is our mistake and keeps its traceback."""


@app.callback(invoke_without_command=True)
def about(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        console.print(f"lexical-sae {splade.__version__}", highlight=False)
        raise typer.Exit


@app.command()
def quickstart(
    out: Annotated[Path, typer.Option(help="Where to save the model.")] = Path("results/quickstart/model"),
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Train a movie-review classifier in a few minutes and explain three reviews it has never seen."""
    from splade.config.load import build_config

    settings = {"experiment_name": "quickstart", "data": {"dataset_name": "movie_snippets"}}
    _train(build_config(settings), out, device)


@app.command()
def train(
    data: Annotated[
        str | None,
        typer.Argument(
            help="A data set by name (docs/data.md), or your own CSV, TSV or JSONL file.", show_default=False
        ),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Experiment file (YAML); see docs/configuration.md.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where to save the model; by default the experiment's output_dir/model.")
    ] = None,
    text_column: Annotated[str | None, typer.Option(help="Column with the text; guessed when not given.")] = None,
    label_column: Annotated[str | None, typer.Option(help="Column with the label; guessed when not given.")] = None,
    skip_bad_rows: Annotated[
        bool, typer.Option("--skip-bad-rows", help="Leave out rows without text or label instead of stopping.")
    ] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Train a classifier on a data set or your own file.

    Example: lexical-sae train tickets.csv --out results/tickets
    """
    from splade.config.load import build_config, load_config

    if (data is None) == (config is None):
        raise ValueError("give either a data set (`lexical-sae train reviews.csv`) or an experiment (`--config FILE`)")
    if config is not None:
        if text_column or label_column or skip_bad_rows:
            raise ValueError(f"with --config, say text_column, label_column and skip_bad_rows under data: in {config}")
        settings = load_config(config)
    else:
        name = Path(str(data)).stem
        columns = {"text_column": text_column, "label_column": label_column}
        source = {"dataset_name": data, **columns, "skip_bad_rows": skip_bad_rows}
        settings = build_config({"experiment_name": name, "output_dir": f"results/{name}", "data": source})
    _train(settings, out or Path(settings.output_dir) / "model", device)


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


def _train(config: "ExperimentConfig", out: Path, device: str) -> None:
    """Train, print the scores, save, and show three explained texts."""
    from splade.models.persistence import require_saveable, save_pretrained
    from splade.pipelines import setup_and_train
    from splade.report.progress import ProgressBars
    from splade.report.terminal import figures_table

    require_saveable(out)
    heading = f"{config.experiment_name}: {config.data.dataset_name} with {config.model.name}, recipe {config.recipe}"
    console.print(Text(heading, style="bold"))
    console.print(Text("(the first time, encoder and data are downloaded: about 90 MB)", style="dim"))
    try:
        with ProgressBars(console) as bars:
            run = setup_and_train(config, device, bars, lambda note: console.print(Text(f"data: {note}", style="dim")))
    except KeyboardInterrupt:
        Console(stderr=True).print("stopped; nothing was saved")
        raise
    scores = run.scores
    console.print(
        figures_table(
            f"On {scores.texts} texts it has never seen",
            [
                ("accuracy", f"{scores.accuracy:.1%}", f"always naming the commonest label: {scores.majority:.1%}"),
                ("active words", f"{scores.active_words:.0f}", f"per text, of {len(run.model.dimensions):,}"),
                ("identity error", f"{scores.identity_error:.0e}", "contributions and bias sum to the logit"),
            ],
        )
    )
    if scores.texts_cut:
        console.print(Text(f"{scores.texts_cut} texts were longer than {run.model.max_length} tokens and were cut"))
    save_pretrained(run.model, out)
    console.print(Text(f"saved to {out}", style="dim"))
    _show_three(run)
    console.print(_next_steps(out))


def _show_three(run: "TrainedRun") -> None:
    from splade import inference
    from splade.report.terminal import explanation_panel

    test = run.dataset.test
    short = [row for row, text in enumerate(test.texts) if 40 <= len(text) <= 240] or range(len(test))
    # One of each class first, so that not all three are of a kind.
    first_of_class = {test.labels[row]: row for row in reversed(short)}
    chosen = dict.fromkeys([*first_of_class.values(), *short])
    rows = list(chosen)[:3]
    for row, explanation in zip(rows, inference.explain(run.model, [test.texts[row] for row in rows]), strict=True):
        console.print(explanation_panel(explanation, labelled=run.dataset.label_names[test.labels[row]]))


def _next_steps(out: Path) -> Text:
    command = "lexical-sae" if shutil.which("lexical-sae") else shlex.quote(sys.argv[0])
    return Text.assemble(
        "\nTry your own: ",
        (f'{command} explain {shlex.quote(str(out))} "your sentence here"', "bold"),
        "\nYour own data: ",
        (f"{command} train your.csv --out results/yours", "bold"),
    )


def main() -> None:
    """Run the command line; errors a person can put right end as one sentence and exit code 1."""
    _register_scripts()
    try:
        app()
    except USER_ERRORS as error:
        from splade.report.terminal import shown

        Console(stderr=True).print(Text.assemble(("error: ", "bold red"), shown(str(error))))
        sys.exit(1)


def _register_scripts() -> None:
    from splade.scripts.fit_lexical_head import fit_lexical_head

    app.command("fit-lexical-head")(fit_lexical_head)
