"""Train a tagger with every seed of an experiment: `python -m splade.scripts.run_ner --config FILE`.

With `--dense` its dense twin is trained on the same sentences and put beside it.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from splade.scripts.console import console, run_command
from splade.scripts.watching import watching

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from splade.config.schema import ExperimentConfig


def ner(
    config: Annotated[Path, typer.Option(help="Experiment file (YAML), such as experiments/ner/conll2003.yaml.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the run; by default the experiment's output_dir.")
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="Your own CoNLL-style file or folder instead of the experiment's data.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a run that was interrupted, from its last checkpoint.")
    ] = False,
    dense: Annotated[
        bool, typer.Option("--dense", help="Train the dense twin only, on the same sentences, and compare.")
    ] = False,
    rate: Annotated[
        list[float] | None,
        typer.Option(help="A learning rate that the dense twin may choose on validation; give several. Each is a run."),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Train a tagger for names (or any tags in BIO) and score it on test sentences.

    Example: python -m splade.scripts.run_ner --config experiments/ner/conll2003.yaml

    Your own: the same with --data mine.conll --out results/mine
    """
    from splade.config.load import load_config
    from splade.config.schema import TAGGING_RECIPE

    settings = load_config(config, default_recipe=TAGGING_RECIPE)
    if out is not None:
        settings = settings.model_copy(update={"output_dir": str(out)})
    if data is not None:
        given = settings.data.model_copy(update={"dataset_name": data, "path": None})
        settings = settings.model_copy(update={"data": given})
    if dense:
        _compare(settings, device, tuple(rate or ()))
    else:
        _train(settings, device, resume=resume)


def _train(config: "ExperimentConfig", device: str, *, resume: bool) -> None:
    from splade.config.schema import TAGGING_RECIPE
    from splade.report.entities_terminal import caps_table, seeds_figures, tagger_figures, types_table
    from splade.report.tagging_evaluation import tagging_evaluation_figures
    from splade.report.terminal import figures_table
    from splade.scripts.ner_evaluation import saved_evaluations
    from splade.scripts.ner_pipeline import run_ner

    heading = f"{config.experiment_name}: {config.data.dataset_name} with {config.model.name}, recipe {config.recipe}"
    default = " (the default of taggers)" if config.recipe == TAGGING_RECIPE else ""
    console.print(Text(heading + default, style="bold"))
    with watching() as watchers:
        results = run_ner(config, resume=resume, device=device, watchers=watchers)
    for run in results.get("runs", [results]):
        console.print(figures_table(*tagger_figures(run)))
        console.print(types_table(run["test"]))
        console.print(caps_table(run["test"]))
    for seed, own in saved_evaluations(config).items():
        console.print(
            Text(f"Seed {seed}, on {own['sentences']} test sentences, 95 % intervals over them", style="bold")
        )
        for heading, rows in tagging_evaluation_figures(own):
            console.print(figures_table(heading, rows))
    if "mean" in results:
        console.print(figures_table(*seeds_figures(results["mean"])))
    console.print(Text(f"everything is in {config.output_dir}; open report.html in a browser", style="dim"))


def _compare(config: "ExperimentConfig", device: str, rates: tuple[float, ...]) -> None:
    from splade.report.progress import ProgressBars
    from splade.report.terminal import figures_table
    from splade.scripts.ner_pipeline import run_dense_tagger
    from splade.scripts.ner_report import TWIN, is_tagging_run, write_tagging_report
    from splade.training.fine_tuning import DENSE_RATES

    with ProgressBars(console) as bars:
        found = run_dense_tagger(config, device, rates=rates or DENSE_RATES, on_step=bars)
        if is_tagging_run(Path(config.output_dir)):
            write_tagging_report(Path(config.output_dir), on_step=bars)
    twin = found[TWIN]
    rows = [(TWIN, f"{twin['f1']:.2%}", f"entity F1; chosen on validation: {twin['setting']}")]
    if "model" in found:
        rows.insert(0, ("this model", f"{found['model']['f1']:.2%}", "entity F1"))
    console.print(figures_table(f"On {found['test_sentences']} test sentences", rows))


if __name__ == "__main__":
    run_command(ner)
