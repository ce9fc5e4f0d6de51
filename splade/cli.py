"""`lexical-sae`: one command with sub-commands."""

from pathlib import Path
from typing import Annotated

import typer

import splade
from splade.scripts.calibrate import calibrate
from splade.scripts.certify import certify
from splade.scripts.console import console, errors_as_sentences, expand_home
from splade.scripts.edit import edit
from splade.scripts.evaluate import evaluate
from splade.scripts.explain import explain, flip, why_not
from splade.scripts.fit_lexical_head import fit_lexical_head
from splade.scripts.lexicon import diff, lexicon
from splade.scripts.plant import plant
from splade.scripts.report import report
from splade.scripts.run_ablation import ablation
from splade.scripts.run_baselines import baselines
from splade.scripts.run_bcos_ablation import bcos_ablation
from splade.scripts.run_experiment import train, train_and_show
from splade.scripts.run_faithfulness import faithfulness
from splade.scripts.run_long_context import long_context
from splade.scripts.run_multi_dataset import multi_dataset
from splade.scripts.run_names import names
from splade.scripts.run_ner import ner
from splade.scripts.run_polysemy import polysemy
from splade.scripts.run_sae import sae
from splade.scripts.run_sota_comparison import sota_comparison
from splade.scripts.run_surgery import surgery
from splade.scripts.run_sweep import sweep
from splade.scripts.tag import tag
from splade.scripts.verify import verify

QUICKSTART = "quickstart"
"""Name of the experiment; only a run of this name is replaced."""
QUICK_TEXTS = 200
"""Test texts of its evaluation, which is to take seconds."""

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

    settings = {
        "experiment_name": QUICKSTART,
        "output_dir": str(out),
        "data": {"dataset_name": "movie_snippets"},
        "evaluation": {"texts": QUICK_TEXTS},
    }
    config = build_config(settings)
    resolve_device(device)
    clear_run(out, only=QUICKSTART)
    train_and_show(config, device, resume=False)


app.command()(train)
app.command()(explain)
app.command()(why_not)
app.command()(flip)
app.command()(baselines)
app.command()(names)
app.command()(lexicon)
app.command()(diff)
app.command()(calibrate)
app.command()(evaluate)
app.command()(faithfulness)
app.command()(sae)
app.command()(long_context)
app.command()(polysemy)
app.command()(edit)
app.command()(certify)
app.command()(verify)
app.command()(surgery)
app.command()(plant)
app.command()(ner)
app.command()(tag)
app.command()(sweep)
app.command()(multi_dataset)
app.command()(ablation)
app.command()(bcos_ablation)
app.command()(sota_comparison)
app.command()(report)
app.command()(fit_lexical_head)


def main() -> None:
    """Run the command line."""
    expand_home()
    with errors_as_sentences():
        app()


if __name__ == "__main__":
    main()
