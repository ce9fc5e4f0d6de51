"""Does a decision survive in a long document? `python -m splade.scripts.run_long_context --config FILE`."""

from typing import Annotated

import typer
from rich.text import Text

from splade.scripts.console import console, run_command
from splade.scripts.trained_run import Config, Device, Out, Resume, open_run

RESULTS, PAGE = "long_context.json", "long_context.html"


def long_context(
    config: Config,
    out: Out = None,
    resume: Resume = False,
    lengths: Annotated[str, typer.Option(help="Tokens of the documents, by comma.")] = "128,256,512,1024,2048",
    needles: Annotated[int, typer.Option(help="Test texts to hide.", min=1)] = 50,
    device: Device = "auto",
) -> None:
    """Hide test texts in long neutral documents: is the label kept, and the explanation with it?

    Example: lexical-sae long-context --config experiments/long_context.yaml

    Writes long_context.json and long_context.html beside the model.
    """
    from splade.evaluation.long_context import LongContextPlan, measure_long_context
    from splade.files import write_text
    from splade.pipelines.inputs import draw
    from splade.report.long_context_tables import long_context_page
    from splade.report.progress import ProgressBars
    from splade.report.tables import tables_html, tables_view
    from splade.training.run_folder import write_json

    # Before anything long: a slip should not cost a training run.
    tokens = _lengths(lengths)
    run = open_run(config, out, device, resume=resume)
    plan = LongContextPlan(lengths=tokens, needles=needles, seed=run.seed)
    test = draw(run.dataset.test, needles, run.seed)
    with ProgressBars(console) as bars:
        found = measure_long_context(run.model, test, plan, bars)
    results = {"plan": plan.model_dump(mode="json"), **found.as_dict()}
    page = long_context_page(results)
    write_json(run.place / RESULTS, results)
    write_text(run.place / PAGE, tables_html(page))
    console.print(tables_view(page))
    console.print(Text(f"written to {run.place}; open {run.place / PAGE}", style="dim"))


def _lengths(listed: str) -> tuple[int, ...]:
    try:
        lengths = tuple(int(length) for length in listed.split(","))
    except ValueError:
        lengths = ()
    if not lengths or min(lengths) < 1:
        raise ValueError(f"--lengths {listed!r} is no list of token counts; write them as in --lengths 128,512")
    return tuple(sorted(set(lengths)))


if __name__ == "__main__":
    run_command(long_context)
