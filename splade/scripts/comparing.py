"""What the commands that train several experiments share: their options, and how they run and show."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from splade.scripts.console import console
from splade.scripts.watching import watching

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from splade.pipelines.variants import Study

Config = Annotated[Path, typer.Option(help="Experiment file (YAML); docs/experiments.md shows some.")]
Out = Annotated[Path | None, typer.Option(help="Folder of all runs; by default the experiment's output_dir.")]
NamesTexts = Annotated[int, typer.Option(help="Test texts to try the names on.", min=1)]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on where it was interrupted; the file may name more experiments by then.")
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]


def compare_and_show(
    study: "Study", title: str, names_texts: int, device: str, *, resume: bool, with_baselines: bool = False
) -> None:
    """Run all experiments of a study, print the comparison, and say where it is."""
    from splade.pipelines.comparison import run_comparison
    from splade.report.comparison import comparison_page
    from splade.report.tables import tables_view
    from splade.training.run_folder import REPORT, RESULTS

    with watching(kept="finished experiments are kept;") as watchers:
        comparison = run_comparison(
            study,
            title,
            names_texts=names_texts,
            with_baselines=with_baselines,
            resume=resume,
            device=device,
            watchers=watchers,
        )
    console.print(tables_view(comparison_page(comparison)))
    place = Path(study.config.output_dir)
    console.print(Text(f"written to {place / RESULTS} and {place / REPORT}", style="dim"), soft_wrap=True)
