"""Accuracy, active words and names against each other: `python -m splade.scripts.run_sweep --config FILE ...`.

The same as `lexical-sae sweep`.
"""

import math
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from splade.scripts.console import console, run_command
from splade.scripts.watching import watching


def sweep(
    config: Annotated[Path, typer.Option(help="Experiment file (YAML); trained once per value.")],
    active_words: Annotated[
        str | None,
        typer.Option(metavar="NUMBERS", help="Active words per text to aim at, with commas: 20,40,60,100."),
    ] = None,
    setting: Annotated[
        str | None,
        typer.Option(
            "--set",
            metavar="KEY=NUMBERS",
            help="Another key of the file to sweep, such as model.neighbourhood.words_per_token=8,16,32.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the sweep; by default the experiment's output_dir.")
    ] = None,
    names_texts: Annotated[int, typer.Option(help="Test texts to try the names on.", min=1)] = 200,
    baselines: Annotated[
        bool,
        typer.Option("--baselines", help="Train the dense twin and TF-IDF too, for the lines to compare with."),
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a sweep that was interrupted, or add values to it.")
    ] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Train an experiment once per value of a key, and draw accuracy and names against active words.

    Example: lexical-sae sweep --config experiments/movie_snippets.yaml --active-words 20,40,60,100
    """
    from splade.config.load import load_config
    from splade.report.frontier import frontier_table
    from splade.sweep import ACTIVE_WORDS, PICTURE, TABLE, run_sweep

    if (active_words is None) == (setting is None):
        raise ValueError("say what to sweep: either --active-words 20,40,60 or --set KEY=NUMBERS")
    key, values = parse_setting(setting if setting is not None else f"{ACTIVE_WORDS}={active_words}")
    settings = load_config(config)
    if out is not None:
        settings = settings.model_copy(update={"output_dir": str(out)})
    with watching(kept="finished points are kept;") as watchers:
        frontier = run_sweep(
            settings,
            key,
            values,
            names_texts=names_texts,
            with_baselines=baselines,
            resume=resume,
            device=device,
            watchers=watchers,
        )
    console.print(frontier_table(frontier))
    place = Path(settings.output_dir)
    console.print(Text(f"written to {place / TABLE} and {place / PICTURE}", style="dim"))


def parse_setting(text: str) -> tuple[str, tuple[int | float, ...]]:
    """A key and the numbers it is to take. Example: `a.b=8,1e2 -> ("a.b", (8, 100))`"""
    key, equals, values = (part.strip() for part in text.partition("="))
    if not equals or not all(key.split(".")):
        raise ValueError(f"{text!r} is not KEY=NUMBERS, such as model.neighbourhood.words_per_token=8,16,32")
    return key, tuple(_number(word.strip(), key) for word in values.split(",")) if values else ()


def _number(word: str, key: str) -> int | float:
    try:
        value = float(word)
    except ValueError as error:
        raise ValueError(f"{key}: {word!r} is not a number; give numbers with commas between them") from error
    if not math.isfinite(value):
        raise ValueError(f"{key}: {word!r} is not a finite number")
    return int(value) if value.is_integer() else value


if __name__ == "__main__":
    run_command(sweep)
