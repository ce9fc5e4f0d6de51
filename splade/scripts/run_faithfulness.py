"""Which explainer tells the truth about a model? `python -m splade.scripts.run_faithfulness --config FILE`.

The same as `lexical-sae faithfulness`.
"""

from typing import Annotated

import typer
from rich.text import Text

from splade.scripts.console import console, run_command
from splade.scripts.trained_run import Config, Device, Out, Resume, open_run

RESULTS, PAGE = "faithfulness.json", "faithfulness.html"


def faithfulness(
    config: Config,
    out: Out = None,
    resume: Resume = False,
    texts: Annotated[int, typer.Option(help="Test texts to explain, drawn by lot; 0 takes all.", min=0)] = 200,
    rationales: Annotated[
        list[str] | None, typer.Option(help="Marks of people to compare with: eraser_movies, hatexplain; repeatable.")
    ] = None,
    rationale_texts: Annotated[int, typer.Option(help="Texts of each; 0 takes all.", min=0)] = 100,
    seeds: Annotated[int, typer.Option(help="How often explainers that draw are asked.", min=1)] = 3,
    captum: Annotated[bool, typer.Option(help="Whether LIME and integrated gradients at the input take part.")] = True,
    lime_samples: Annotated[int, typer.Option(help="Masked texts that LIME reads per text.", min=1)] = 200,
    shapley_orders: Annotated[int, typer.Option(help="Random orders behind Shapley values.", min=1)] = 20,
    path_steps: Annotated[int, typer.Option(help="Steps of integrated gradients.", min=1)] = 50,
    device: Device = "auto",
) -> None:
    """Compare explainers on what really happens when words go, on people's marks, and on cost.

    Example: lexical-sae faithfulness --config experiments/faithfulness.yaml

    Writes faithfulness.json and faithfulness.html into the run's folder.
    """
    from splade.data.rationales import load_rationales
    from splade.evaluation.arena.contest import compare_explainers
    from splade.evaluation.arena.settings import ArenaSettings
    from splade.files import write_text
    from splade.report.arena import arena_page
    from splade.report.progress import ProgressBars
    from splade.report.tables import tables_html, tables_view
    from splade.training.run_folder import write_json

    # Before anything long: a misspelt name should not cost a training run.
    given = [load_rationales(name) for name in rationales or ()]
    run = open_run(config, out, device, resume=resume)
    sizes = ArenaSettings(
        texts=texts,
        rationale_texts=rationale_texts,
        seeds=seeds,
        with_captum=captum,
        captum_steps=path_steps,
        lime_samples=lime_samples,
        shapley_orders=shapley_orders,
        path_steps=path_steps,
        seed=run.seed,
    )
    for note in (note for one in given for note in one.notes):
        console.print(Text(note, style="dim"))
    with ProgressBars(console) as bars:
        found = compare_explainers(run.model, run.dataset.test.texts, given, sizes, bars).as_dict()
    name = run.settings.experiment_name
    page = arena_page(f"Explainers of {name}", found)
    console.print(tables_view(page))
    write_json(run.place / RESULTS, {"experiment_name": name, "model": str(run.model_folder), **found})
    write_text(run.place / PAGE, tables_html(page))
    console.print(Text(f"written to {run.place / RESULTS}; open {run.place / PAGE}", style="dim"))


if __name__ == "__main__":
    run_command(faithfulness)
