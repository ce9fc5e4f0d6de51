"""Words beside features of a post-hoc sparse autoencoder: `python -m splade.scripts.run_sae --config FILE`."""

from typing import Annotated

import typer
from rich.text import Text

from splade.scripts.console import console, run_command
from splade.scripts.trained_run import Config, Out, Resume, open_run


def sae(
    config: Config,
    out: Out = None,
    resume: Resume = False,
    state: Annotated[str, typer.Option(help="Hidden state of a text: mean of its tokens, or cls.")] = "mean",
    train_texts: Annotated[int, typer.Option(help="Most train texts to fit dictionaries on.", min=10)] = 5000,
    texts: Annotated[int, typer.Option(help="Most test texts to measure on.", min=2)] = 2000,
    steps: Annotated[int, typer.Option(help="Steps to fit each dictionary.", min=1)] = 1500,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps; dictionaries are fitted on the CPU.")] = "auto",
) -> None:
    """Fit sparse autoencoders to the encoder of a trained model, and compare their features with its words.

    Example: lexical-sae sae --config experiments/movie_snippets.yaml

    Writes sae.json and sae.html beside the model.
    """
    from splade.pipelines.sae_comparison import PAGE, compare_with_saes, write_comparison
    from splade.report.progress import ProgressBars
    from splade.report.sae_tables import sae_page
    from splade.report.tables import tables_view
    from splade.training.posthoc_sae import SAESettings

    run = open_run(config, out, device, resume=resume)
    with ProgressBars(console) as bars:
        results = compare_with_saes(
            run.model,
            run.dataset,
            SAESettings(steps=steps, seed=run.seed),
            state=state,
            train_texts=train_texts,
            test_texts=texts,
            on_step=bars,
        )
    write_comparison(results, run.place)
    console.print(tables_view(sae_page(results)))
    console.print(Text(f"written to {run.place}; open {run.place / PAGE}", style="dim"))


if __name__ == "__main__":
    run_command(sae)
