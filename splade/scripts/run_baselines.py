"""The yardsticks of an experiment on the same rows: `python -m splade.scripts.run_baselines --config FILE`.

Where a run of the experiment is in its folder, its model is compared with each yardstick, text by text.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from splade.scripts.console import console, errors_as_sentences

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from splade.config.schema import ExperimentConfig


def baselines(
    config: Annotated[Path, typer.Option(help="Experiment file (YAML): data, backbone, epochs and batch size.")],
    out: Annotated[Path | None, typer.Option(help="Folder of the run; by default the experiment's output_dir.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    dense: Annotated[bool, typer.Option(help="Train the dense twin too; takes as long as a model.")] = True,
) -> None:
    """Train the dense twin and TF-IDF on an experiment's rows, and compare its model with them.

    Example: lexical-sae baselines --config experiments/movie_snippets.yaml
    """
    from splade.config.load import load_config

    settings = load_config(config)
    if out is not None:
        settings = settings.model_copy(update={"output_dir": str(out)})
    compare(settings, device, dense=dense)


def compare(config: "ExperimentConfig", device: str, *, dense: bool) -> None:
    """Fit the yardsticks, write `baselines.json`, and print the table."""
    from splade.pipelines import run_baselines
    from splade.report.progress import ProgressBars
    from splade.report.terminal import baseline_figures, figures_table

    with ProgressBars(console) as bars:
        found = run_baselines(config, device, with_dense=dense, on_step=bars)
    console.print(figures_table(*baseline_figures(found)))
    console.print(Text(f"written to {Path(config.output_dir) / 'baselines.json'}", style="dim"))


if __name__ == "__main__":
    with errors_as_sentences():
        typer.run(baselines)
