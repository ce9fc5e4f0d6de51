"""Which explainer tells the truth about a model? `python -m splade.scripts.run_faithfulness --config FILE`.

The same as `lexical-sae faithfulness`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from splade.scripts.console import console, run_command
from splade.scripts.watching import watching

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from splade.config.schema import ExperimentConfig

RESULTS, PAGE = "faithfulness.json", "faithfulness.html"


def faithfulness(
    config: Annotated[Path, typer.Option(help="Experiment file (YAML); its model is trained if it is not there yet.")],
    out: Annotated[Path | None, typer.Option(help="Folder of the run; by default the experiment's output_dir.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with training that was interrupted, from its last checkpoint.")
    ] = False,
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
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Compare explainers on what really happens when words go, on people's marks, and on cost.

    Example: lexical-sae faithfulness --config experiments/faithfulness.yaml

    Writes faithfulness.json and faithfulness.html into the run's folder.
    """
    from splade.config.load import load_config
    from splade.data.rationales import load_rationales
    from splade.device import resolve_device
    from splade.evaluation.arena.contest import compare_explainers
    from splade.evaluation.arena.settings import ArenaSettings
    from splade.files import write_text
    from splade.models.persistence import from_pretrained
    from splade.pipelines import load_data, require_same_rows
    from splade.report.arena import arena_page
    from splade.report.progress import ProgressBars
    from splade.report.tables import tables_html, tables_view
    from splade.training.run_folder import write_json

    settings = load_config(config)
    if out is not None:
        settings = settings.model_copy(update={"output_dir": str(out)})
    # Before anything long: a misspelt name should not cost a training run.
    given = [load_rationales(name) for name in rationales or ()]
    folder = _trained(settings, device, resume=resume)
    seed = settings.evaluation.seeds[0]
    sizes = ArenaSettings(
        texts=texts,
        rationale_texts=rationale_texts,
        seeds=seeds,
        with_captum=captum,
        captum_steps=path_steps,
        lime_samples=lime_samples,
        shapley_orders=shapley_orders,
        path_steps=path_steps,
        seed=seed,
    )
    for note in (note for one in given for note in one.notes):
        console.print(Text(note, style="dim"))
    model = from_pretrained(folder).to(resolve_device(device))
    dataset = load_data(settings, seed)
    require_same_rows(folder.parent, dataset)
    with ProgressBars(console) as bars:
        found = compare_explainers(model, dataset.test.texts, given, sizes, bars).as_dict()
    page = arena_page(f"Explainers of {settings.experiment_name}", found)
    console.print(tables_view(page))
    place = Path(settings.output_dir)
    write_json(place / RESULTS, {"experiment_name": settings.experiment_name, "model": str(folder), **found})
    write_text(place / PAGE, tables_html(page))
    console.print(Text(f"written to {place / RESULTS}; open {place / PAGE}", style="dim"))


def _trained(settings: "ExperimentConfig", device: str, *, resume: bool) -> Path:
    """Where the experiment's model is, after training it if there is none."""
    from splade.pipelines import model_folder, require_same_experiment, run_experiment

    folder = model_folder(settings)
    if not folder.is_dir():
        console.print(Text(f"there is no model in {folder} yet; it is trained first", style="dim"))
        with watching() as watchers:
            run_experiment(settings, resume=resume, device=device, watchers=watchers)
        return model_folder(settings)
    require_same_experiment(settings, folder.parent)
    return folder


if __name__ == "__main__":
    run_command(faithfulness)
