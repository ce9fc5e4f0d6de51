"""What words do when a word has several meanings: `python -m splade.scripts.run_polysemy --config FILE`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from splade.scripts.console import console, run_command
from splade.scripts.trained_run import Config, Device, Out, Resume, open_run

RESULTS, PAGE = "polysemy.json", "polysemy.html"


def polysemy(
    config: Config,
    out: Out = None,
    resume: Resume = False,
    senses: Annotated[Path | None, typer.Option(help="Folder of CoarseWSD-20; else in $LEXICAL_SAE_DATA.")] = None,
    pairs: Annotated[Path | None, typer.Option(help="Folder of WiC; else in $LEXICAL_SAE_DATA.")] = None,
    other: Annotated[Path | None, typer.Option(help="Folder of another model, say without slots.")] = None,
    mentions: Annotated[int, typer.Option(help="Mentions of each word per split, at most.", min=10)] = 200,
    most_pairs: Annotated[int, typer.Option(help="Pairs of sentences per split, at most.", min=10)] = 1000,
    device: Device = "auto",
) -> None:
    """Test whether sense slots split senses, and whether words tell in which sense a word is used.

    Example: lexical-sae polysemy --config experiments/polysemy.yaml

    Writes polysemy.json and polysemy.html beside the model.
    """
    from splade.data.senses import load_coarse_senses, load_context_pairs
    from splade.device import resolve_device
    from splade.evaluation.polysemy import PolysemyPlan, measure_polysemy
    from splade.files import write_text
    from splade.models.persistence import from_pretrained
    from splade.report.polysemy_tables import polysemy_page
    from splade.report.progress import ProgressBars
    from splade.report.tables import tables_html, tables_view
    from splade.training.run_folder import write_json

    words, sentences = load_coarse_senses(senses), load_context_pairs(pairs)
    run = open_run(config, out, device, resume=resume)
    plan = PolysemyPlan(mentions_per_word=mentions, pairs=most_pairs, seed=run.seed)
    models = {"this model": run.model}
    if other is not None:
        models[str(other)] = from_pretrained(other).to(resolve_device(device))
    with ProgressBars(console) as bars:
        found = {name: measure_polysemy(one, words, sentences, plan, bars) for name, one in models.items()}
    results = {name: result.as_dict() for name, result in found.items()}
    page = polysemy_page(results)
    write_json(run.place / RESULTS, results)
    write_text(run.place / PAGE, tables_html(page))
    console.print(tables_view(page))
    console.print(Text(f"written to {run.place}; open {run.place / PAGE}", style="dim"))


if __name__ == "__main__":
    run_command(polysemy)
