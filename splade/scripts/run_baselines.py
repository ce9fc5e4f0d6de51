"""The yardsticks of an experiment on the same rows: `python -m splade.scripts.run_baselines --config FILE`.

Where a run of the experiment is in its folder, its model is compared with each yardstick, text by text.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from splade.scripts.console import console, run_command

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from splade.config.schema import ExperimentConfig


def baselines(
    config: Annotated[Path, typer.Option(help="Experiment file (YAML): data, backbone, epochs and batch size.")],
    out: Annotated[Path | None, typer.Option(help="Folder of the run; by default the experiment's output_dir.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    dense: Annotated[
        bool, typer.Option(help="Train the dense twin too: a run per rate, and one per further seed.")
    ] = True,
    rates: Annotated[
        str, typer.Option(help="Learning rates that the dense twin may choose from on validation; each is a run.")
    ] = "5e-5,1e-4,2e-4",
    compare_only: Annotated[
        bool, typer.Option("--compare-only", help="Train nothing: compare a new model with the yardsticks of before.")
    ] = False,
) -> None:
    """Train the dense twin and TF-IDF on an experiment's rows, and compare its model with them.

    Example: lexical-sae baselines --config experiments/movie_snippets.yaml
    """
    from splade.config.load import load_config

    settings = load_config(config)
    if out is not None:
        settings = settings.model_copy(update={"output_dir": str(out)})
    compare(settings, device, _rates(rates) if dense else (), compare_only=compare_only)


def _rates(listed: str) -> tuple[float, ...]:
    try:
        rates = tuple(float(rate) for rate in listed.split(","))
    except ValueError:
        rates = ()
    if not rates or not all(0 < rate < 1 for rate in rates):
        raise ValueError(f"--rates {listed!r} is no list of learning rates; write them as in --rates 5e-5,1e-4")
    return rates


def compare(
    config: "ExperimentConfig", device: str, dense_rates: tuple[float, ...], *, compare_only: bool = False
) -> None:
    """Fit the yardsticks or take those of before, write `baselines.json`, and print the table."""
    from splade.pipelines import compare_again, run_baselines
    from splade.report.progress import ProgressBars
    from splade.report.terminal import baseline_figures, figures_table

    with ProgressBars(console) as bars:
        if compare_only:
            found = compare_again(config, device, on_step=bars)
        else:
            found = run_baselines(config, device, dense_rates=dense_rates, on_step=bars)
    console.print(figures_table(*baseline_figures(found)))
    place = Path(config.output_dir)
    console.print(Text(f"written to {place / 'baselines.json'}; `lexical-sae report {place}` shows it", style="dim"))


if __name__ == "__main__":
    run_command(baselines)
