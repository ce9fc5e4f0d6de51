"""A run as a page: the command `report`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from lexical_sae.commands.console import console
from lexical_sae.commands.options import AllTokens, require_file


def report(
    run: Annotated[Path, typer.Argument(help="Folder of a run, or of the model in it.")],
    out: Annotated[Path | None, typer.Option(help="File to write; by default report.html in the folder.")] = None,
    texts: Annotated[int, typer.Option(help="Test texts to explain, half of them wrong decisions.", min=0)] = 8,
    all_tokens: AllTokens = False,
) -> None:
    """Write a run's report as one HTML file: figures, curves, words of each class, texts explained, settings.

    Example: lexical-sae report results/quickstart

    The file needs nothing else, runs no script, and can be sent or printed. What is missing is listed at its end.
    A tagger's has sentences with their entities in colour, and the words behind each.
    """
    require_file(run)
    from lexical_sae.report.printable import shown
    from lexical_sae.report.progress import ProgressBars
    from lexical_sae.runs import Run

    with ProgressBars(Console(stderr=True)) as bars:
        written, missing = Run.open(run).report(out, texts, bars, all_tokens=all_tokens)
    for line in missing:
        console.print(Text(shown(line), style="dim"))
    console.print(Text(shown(f"written to {written}"), style="dim"), soft_wrap=True)
