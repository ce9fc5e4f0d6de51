"""Do a run's words mean what they say? `python -m splade.scripts.run_names --config FILE` writes `names.json`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from splade.scripts.console import AllTokens, console, run_command


def names(
    config: Annotated[Path, typer.Option(help="Experiment file (YAML) whose run is in its output_dir.")],
    out: Annotated[Path | None, typer.Option(help="Folder of the run; by default the experiment's output_dir.")] = None,
    texts: Annotated[int, typer.Option(help="Test texts to try the edits on.", min=1)] = 200,
    words: Annotated[int, typer.Option(help="Strongest words to print per class.", min=1)] = 20,
    all_tokens: AllTokens = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Test whether dimensions mean their names: delete or swap a word, and see whether its dimension follows.

    Example: lexical-sae names --config experiments/movie_snippets.yaml

    Training does so too, on 100 texts (evaluation.names_texts). Of several seeds the first one's model is tested.
    """
    from splade.config.load import load_config
    from splade.pipelines import model_folder, run_names
    from splade.report.context_terminal import context_figures
    from splade.report.progress import ProgressBars
    from splade.report.terminal import figures_table, name_figures, strongest_words_table
    from splade.training.run_folder import NAMES

    settings = load_config(config)
    if out is not None:
        settings = settings.model_copy(update={"output_dir": str(out)})
    with ProgressBars(console) as bars:
        found = run_names(settings, texts=texts, words=words, device=device, on_step=bars, all_tokens=all_tokens)
    for title in ("model", "bag of words"):
        console.print(figures_table(*name_figures(title, found[title])))
        console.print(figures_table(*context_figures(title, found[title]["context"])))
    console.print(strongest_words_table(found["strongest_words"]))
    written = model_folder(settings).parent / NAMES
    told = f"written to {written}; `lexical-sae report {settings.output_dir}` shows it"
    console.print(Text(told, style="dim"))


if __name__ == "__main__":
    run_command(names)
