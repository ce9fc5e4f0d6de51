"""Studies of a trained model: explainers compared, sparse autoencoders, long texts, word senses.

Each opens a run (training it first if an experiment file has no model yet), measures, writes a JSON file and a page
into the run's folder, and prints the tables.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from lexical_sae.commands.console import console
from lexical_sae.commands.options import Config, Device, Out, Resume, RunFolder, check_run, saved_model, trained_run
from lexical_sae.utils.errors import SettingsError

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from lexical_sae.report.tables import TablesPage
    from lexical_sae.runs import Run


def faithfulness(
    run: RunFolder = None,
    config: Config = None,
    out: Out = None,
    resume: Resume = False,
    texts: Annotated[int, typer.Option(help="Test texts to explain, sampled at random; 0 takes all.", min=0)] = 200,
    rationales: Annotated[
        list[str] | None, typer.Option(help="Human rationales to compare with: eraser_movies, hatexplain; repeatable.")
    ] = None,
    rationale_texts: Annotated[int, typer.Option(help="Texts of each; 0 takes all.", min=0)] = 100,
    seeds: Annotated[int, typer.Option(help="Repetitions of explainers that sample.", min=1)] = 3,
    captum: Annotated[bool, typer.Option(help="Include LIME and integrated gradients at the input.")] = True,
    lime_samples: Annotated[int, typer.Option(help="Masked texts per text for LIME.", min=1)] = 200,
    shapley_orders: Annotated[int, typer.Option(help="Random orders for Shapley values.", min=1)] = 20,
    path_steps: Annotated[int, typer.Option(help="Steps of integrated gradients.", min=1)] = 50,
    device: Device = "auto",
) -> None:
    """Compare explainers: deletion and substitution tests, human rationales, and cost.

    Example: lexical-sae faithfulness --config experiments/faithfulness.yaml

    Writes faithfulness.json and faithfulness.html into the run's folder.
    """
    check_run(run, config, out)
    from lexical_sae.data.sources.rationales import load_rationales
    from lexical_sae.evaluation.explainers.benchmark import compare_explainers
    from lexical_sae.evaluation.explainers.explainer import ArenaSettings
    from lexical_sae.evaluation.views.methods import explainers_page
    from lexical_sae.report.progress import ProgressBars

    # Before anything long: a misspelt name should not cost a training run.
    given = [load_rationales(name) for name in rationales or ()]
    opened = trained_run(run, config, out, device, resume=resume)
    sizes = ArenaSettings(
        texts=texts,
        rationale_texts=rationale_texts,
        seeds=seeds,
        with_captum=captum,
        captum_steps=path_steps,
        lime_samples=lime_samples,
        shapley_orders=shapley_orders,
        path_steps=path_steps,
        seed=opened.seed,
    )
    for note in (note for one in given for note in one.notes):
        console.print(Text(note, style="dim"))
    with ProgressBars(console) as bars:
        found = compare_explainers(opened.model, opened.data.test.texts, given, sizes, bars)
    name = opened.config.experiment_name
    results = {"experiment_name": name, "model": str(opened.model_folder), **found.as_dict()}
    _leave(opened, "faithfulness", results, explainers_page(f"Explainers of {name}", found))


def sae(
    run: RunFolder = None,
    config: Config = None,
    out: Out = None,
    resume: Resume = False,
    state: Annotated[str, typer.Option(help="Hidden state of a text: mean of its tokens, or cls.")] = "mean",
    train_texts: Annotated[int, typer.Option(help="Most train texts to fit dictionaries on.", min=10)] = 5000,
    texts: Annotated[int, typer.Option(help="Most test texts to measure on.", min=2)] = 2000,
    steps: Annotated[int, typer.Option(help="Steps to fit each dictionary.", min=1)] = 1500,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps; dictionaries are fitted on the CPU.")] = "auto",
) -> None:
    """Fit sparse autoencoders to the encoder of a trained model, and compare their features with its words.

    Example: lexical-sae sae results/quickstart

    Writes sae.json and sae.html into the run's folder.
    """
    check_run(run, config, out)
    from lexical_sae.report.progress import ProgressBars
    from lexical_sae.report.studies.post_hoc_sae import sae_page
    from lexical_sae.studies.post_hoc_sae.comparing import compare_with_saes
    from lexical_sae.studies.post_hoc_sae.fitting import SAESettings

    if state not in ("mean", "cls"):
        raise SettingsError(f"--state {state!r} is unknown; choose mean or cls")
    opened = trained_run(run, config, out, device, resume=resume)
    with ProgressBars(console) as bars:
        results = compare_with_saes(
            opened.model,
            opened.data,
            SAESettings(steps=steps, seed=opened.seed),
            state=state,
            train_texts=train_texts,
            test_texts=texts,
            on_step=bars,
        )
    _leave(opened, "sae", results, sae_page(results))


def long_context(
    run: RunFolder = None,
    config: Config = None,
    out: Out = None,
    resume: Resume = False,
    lengths: Annotated[str, typer.Option(help="Tokens per document, with commas.")] = "128,256,512,1024,2048",
    needles: Annotated[int, typer.Option(help="Test texts to hide.", min=1)] = 50,
    device: Device = "auto",
) -> None:
    """Hide test texts in long neutral documents: is the label kept, and the explanation with it?

    Example: lexical-sae long-context --config experiments/long_context.yaml

    Writes long_context.json and long_context.html into the run's folder.
    """
    check_run(run, config, out)
    from lexical_sae.data.splits import draw
    from lexical_sae.report.progress import ProgressBars
    from lexical_sae.report.studies.long_context import long_context_page
    from lexical_sae.studies.long_context import measuring

    # Before anything long: a slip should not cost a training run.
    tokens = _lengths(lengths)
    opened = trained_run(run, config, out, device, resume=resume)
    plan = measuring.LongContextPlan(lengths=tokens, needles=needles, seed=opened.seed)
    test = draw(opened.data.test, needles, opened.seed)
    with ProgressBars(console) as bars:
        found = measuring.measure_long_context(opened.model, test, plan, bars)
    results = {"plan": plan.model_dump(mode="json"), **found.as_dict()}
    _leave(opened, "long_context", results, long_context_page(results))


def _lengths(listed: str) -> tuple[int, ...]:
    try:
        lengths = tuple(int(length) for length in listed.split(","))
    except ValueError:
        lengths = ()
    if not lengths or min(lengths) < 1:
        raise SettingsError(f"--lengths {listed!r} is no list of token counts; write them as in --lengths 128,512")
    return tuple(sorted(set(lengths)))


def polysemy(
    run: RunFolder = None,
    config: Config = None,
    out: Out = None,
    resume: Resume = False,
    senses: Annotated[Path | None, typer.Option(help="Folder of CoarseWSD-20; else in $LEXICAL_SAE_DATA.")] = None,
    pairs: Annotated[Path | None, typer.Option(help="Folder of WiC; else in $LEXICAL_SAE_DATA.")] = None,
    other: Annotated[Path | None, typer.Option(help="Another model's folder, such as one without slots.")] = None,
    mentions: Annotated[int, typer.Option(help="Mentions of each word per split, at most.", min=10)] = 200,
    most_pairs: Annotated[int, typer.Option(help="Pairs of sentences per split, at most.", min=10)] = 1000,
    device: Device = "auto",
) -> None:
    """Test whether sense slots separate word senses, and whether features reveal the sense of a word.

    Example: lexical-sae polysemy --config experiments/polysemy.yaml

    Writes polysemy.json and polysemy.html into the run's folder.
    """
    check_run(run, config, out)
    from lexical_sae.data.sources.senses import load_coarse_senses, load_context_pairs
    from lexical_sae.models.persistence import from_pretrained
    from lexical_sae.report.progress import ProgressBars
    from lexical_sae.report.studies.polysemy import polysemy_page
    from lexical_sae.studies.polysemy.measuring import PolysemyPlan, measure_polysemy
    from lexical_sae.utils.device import resolve_device

    words, sentences = load_coarse_senses(senses), load_context_pairs(pairs)
    opened = trained_run(run, config, out, device, resume=resume)
    plan = PolysemyPlan(mentions_per_word=mentions, pairs=most_pairs, seed=opened.seed)
    models = {"this model": opened.model}
    if other is not None:
        models[str(other)] = from_pretrained(saved_model(other)).to(resolve_device(device))
    with ProgressBars(console) as bars:
        found = {name: measure_polysemy(one, words, sentences, plan, bars) for name, one in models.items()}
    results = {name: result.as_dict() for name, result in found.items()}
    _leave(opened, "polysemy", results, polysemy_page(results))


def _leave(run: "Run", study: str, results: dict[str, Any], page: "TablesPage") -> None:
    """Write a study's figures and page into the run's folder, and print the tables."""
    from lexical_sae.report.tables import tables_html, tables_view
    from lexical_sae.utils.files import write_json, write_text

    written = write_json(run.folder / f"{study}.json", results)
    shown = write_text(run.folder / f"{study}.html", tables_html(page))
    console.print(tables_view(page))
    console.print(Text(f"written to {written}; open {shown}", style="dim"), soft_wrap=True)
