"""Accuracy, shifts or words, and names against each other: `python -m splade.scripts.run_sweep --config FILE ...`.

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
    shifts: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS",
            help="Words per text that context may shift, with commas: 0,1,2,3,unlimited; 0 is a table of words. For "
            "the recipe anchored.",
        ),
    ] = None,
    active_words: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS", help="Active words per text to aim at, with commas: 20,40,60,100. For other recipes."
        ),
    ] = None,
    setting: Annotated[
        str | None,
        typer.Option(
            "--set",
            metavar="KEY=NUMBERS",
            help="Another key of the file to sweep, such as model.context.least=0.3,0.5,0.7.",
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
    """Train an experiment once per value of a key, and draw accuracy and names against shifts or active words.

    Example: lexical-sae sweep --config experiments/movie_snippets.yaml --shifts 0,1,2,3,unlimited
    """
    from splade.config.load import load_config
    from splade.report.frontier import SHIFTS, frontier_table
    from splade.sweep import ACTIVE_WORDS, PICTURE, TABLE, run_sweep

    named = [
        f"{key}={values}" for key, values in ((SHIFTS, shifts), (ACTIVE_WORDS, active_words)) if values is not None
    ]
    asked = [*named, *([] if setting is None else [setting])]
    if len(asked) != 1:
        raise ValueError("say what to sweep: --shifts 0,1,2,3,unlimited, --active-words 20,40,60, or --set KEY=NUMBERS")
    key, values = parse_setting(asked[0])
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
    """A key and the numbers it is to take; `unlimited` is one of shifts. Example: `a.b=8,1e2 -> ("a.b", (8, 100))`"""
    key, equals, values = (part.strip() for part in text.partition("="))
    if not equals or not all(key.split(".")):
        raise ValueError(f"{text!r} is not KEY=NUMBERS, such as model.context.least=0.3,0.5,0.7")
    return key, tuple(_number(word.strip(), key) for word in values.split(",")) if values else ()


def _number(word: str, key: str) -> int | float:
    from splade.report.frontier import SHIFTS, value_text

    if key == SHIFTS and word == value_text(math.inf):
        return math.inf
    try:
        value = float(word)
    except ValueError as error:
        raise ValueError(f"{key}: {word!r} is not a number; give numbers with commas between them") from error
    if not math.isfinite(value):
        raise ValueError(f"{key}: {word!r} is not a finite number")
    return int(value) if value.is_integer() else value


if __name__ == "__main__":
    run_command(sweep)
