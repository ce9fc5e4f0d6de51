"""Models compared: baselines, a sweep over one setting, and several experiments side by side."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from lexical_sae.commands.console import console, watching
from lexical_sae.commands.options import Device, RunFolder, chosen_run
from lexical_sae.utils.errors import SettingsError

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from lexical_sae.config.schema import ExperimentConfig
    from lexical_sae.runs.comparing.variants import Study

Config = Annotated[Path, typer.Option(help="Experiment file (YAML); docs/experiments.md shows some.")]
Out = Annotated[Path | None, typer.Option(help="Folder of all runs; by default the experiment's output_dir.")]
NamesTexts = Annotated[int, typer.Option(help="Test texts for the name tests.", min=1)]
Resume = Annotated[
    bool, typer.Option("--resume", help="Resume an interrupted comparison; the file may name more experiments by then.")
]


def compare_and_show(
    study: "Study", title: str, names_texts: int, device: str, *, resume: bool, with_baselines: bool = False
) -> None:
    """Run all experiments of a study, print the comparison, and say where it is."""
    from lexical_sae.report.studies.comparison import comparison_page
    from lexical_sae.report.tables import tables_view
    from lexical_sae.runs.comparing.comparison import run_comparison
    from lexical_sae.runs.folder import REPORT, RESULTS

    with watching(kept="finished experiments are kept;") as watchers:
        comparison = run_comparison(
            study,
            title,
            names_texts=names_texts,
            with_baselines=with_baselines,
            resume=resume,
            device=device,
            watchers=watchers,
        )
    console.print(tables_view(comparison_page(comparison)))
    place = Path(study.config.output_dir)
    console.print(Text(f"written to {place / RESULTS} and {place / REPORT}", style="dim"), soft_wrap=True)


def baselines(
    run: RunFolder = None,
    config: Annotated[Path | None, typer.Option(help="Experiment file (YAML) instead; needs no trained model.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="With --config: folder of the run; by default its output_dir.")
    ] = None,
    device: Device = "auto",
    dense: Annotated[
        bool, typer.Option(help="Train the dense baseline too: a run per rate, and one per further seed.")
    ] = True,
    rates: Annotated[
        str, typer.Option(help="Learning rates that the dense baseline may choose from on validation; each is a run.")
    ] = "5e-5,1e-4,2e-4",
    compare_only: Annotated[
        bool, typer.Option("--compare-only", help="Train nothing: compare a new model with the existing baselines.")
    ] = False,
) -> None:
    """Compare an experiment's model with TF-IDF, the frozen encoder and the dense baseline, on the same rows.

    Example: lexical-sae baselines results/quickstart
    """
    wanted = _rates(rates) if dense else ()
    opened = chosen_run(run, config, out, device)
    settings = opened.config.model_copy(update={"output_dir": str(opened.folder)})
    compare(settings, device, wanted, compare_only=compare_only)


def _rates(listed: str) -> tuple[float, ...]:
    try:
        rates = tuple(float(rate) for rate in listed.split(","))
    except ValueError:
        rates = ()
    if not rates or not all(0 < rate < 1 for rate in rates):
        raise SettingsError(f"--rates {listed!r} is no list of learning rates; write them as in --rates 5e-5,1e-4")
    return rates


def compare(
    config: "ExperimentConfig", device: str, dense_rates: tuple[float, ...], *, compare_only: bool = False
) -> None:
    """Fit the baselines or take the existing ones, write `baselines.json`, and print the table."""
    from lexical_sae.report.progress import ProgressBars
    from lexical_sae.report.terminal import baseline_figures, figures_table
    from lexical_sae.runs import compare_again, run_baselines

    with ProgressBars(console) as bars:
        if compare_only:
            found = compare_again(config, device, on_step=bars)
        else:
            found = run_baselines(config, device, dense_rates=dense_rates, on_step=bars)
    console.print(figures_table(*baseline_figures(found)))
    place = Path(config.output_dir)
    console.print(Text(f"written to {place / 'baselines.json'}; `lexical-sae report {place}` shows it", style="dim"))


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
    names_texts: Annotated[int, typer.Option(help="Test texts for the name tests.", min=1)] = 200,
    baselines: Annotated[
        bool,
        typer.Option("--baselines", help="Train the dense baseline and TF-IDF too, for the lines to compare with."),
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted sweep, or add values to it.")] = False,
    device: Device = "auto",
) -> None:
    """Train an experiment once per value of a key, and draw accuracy and names against shifts or active words.

    Example: lexical-sae sweep --config experiments/movie_snippets.yaml --shifts 0,1,2,3,unlimited
    """
    from lexical_sae.config.load import load_config
    from lexical_sae.report.charts.frontier import SHIFTS, frontier_table
    from lexical_sae.runs.comparing.sweep import ACTIVE_WORDS, PICTURE, TABLE, run_sweep

    named = [
        f"{key}={values}" for key, values in ((SHIFTS, shifts), (ACTIVE_WORDS, active_words)) if values is not None
    ]
    asked = [*named, *([] if setting is None else [setting])]
    if len(asked) != 1:
        raise SettingsError(
            "say what to sweep: --shifts 0,1,2,3,unlimited, --active-words 20,40,60, or --set KEY=NUMBERS"
        )
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
        raise SettingsError(f"{text!r} is not KEY=NUMBERS, such as model.context.least=0.3,0.5,0.7")
    return key, tuple(_number(word.strip(), key) for word in values.split(",")) if values else ()


def _number(word: str, key: str) -> int | float:
    from lexical_sae.report.charts.frontier import SHIFTS, value_text

    if key == SHIFTS and word == value_text(math.inf):
        return math.inf
    try:
        value = float(word)
    except ValueError as error:
        raise SettingsError(f"{key}: {word!r} is not a number; give numbers with commas between them") from error
    if not math.isfinite(value):
        raise SettingsError(f"{key}: {word!r} is not a finite number")
    return int(value) if value.is_integer() else value


def ablation(
    config: Config, out: Out = None, names_texts: NamesTexts = 200, resume: Resume = False, device: Device = "auto"
) -> None:
    """Train an experiment and its variants, and compare each with it on the same texts.

    Example: lexical-sae ablation --config experiments/ablation/ablation.yaml

    Variants are those of the file. Without any: each term off, all off, the other completeness, a fixed weight for the
    cross-entropy, and each other gate.
    """
    from lexical_sae.runs.comparing.variants import load_variants, term_ablations

    study = load_variants(config, term_ablations, kind="ablation", out=out)
    compare_and_show(study, "what its parts are good for", names_texts, device, resume=resume)


def bcos_ablation(
    config: Config, out: Out = None, names_texts: NamesTexts = 200, resume: Resume = False, device: Device = "auto"
) -> None:
    """Train an experiment with its ReLU head and with B-cos heads, and test these against it on the same texts.

    Example: lexical-sae bcos-ablation --config experiments/ablation/bcos.yaml
    """
    from lexical_sae.runs.comparing.variants import bcos_heads, load_variants

    study = load_variants(config, bcos_heads, kind="bcos_ablation", base=lambda _: "ReLU-2", out=out)
    compare_and_show(study, "heads", names_texts, device, resume=resume)


def multi_dataset(
    config: Config, out: Out = None, names_texts: NamesTexts = 200, resume: Resume = False, device: Device = "auto"
) -> None:
    """Train and measure one experiment on every data set that its file lists under `datasets`.

    Example: lexical-sae multi-dataset --config experiments/cpu/multi_dataset.yaml
    """
    from lexical_sae.runs.comparing.variants import load_datasets

    compare_and_show(load_datasets(config, out=out), "data sets", names_texts, device, resume=resume)


def sota_comparison(
    config: Config,
    out: Out = None,
    names_texts: NamesTexts = 200,
    baselines: Annotated[bool, typer.Option(help="Train the dense baseline and TF-IDF too, on the same rows.")] = True,
    resume: Resume = False,
    device: Device = "auto",
) -> None:
    """Train an experiment with every recipe, the dense baseline and TF-IDF: accuracy, words, names and cost in one
    table.

    Example: lexical-sae sota-comparison --config experiments/cpu/sota_comparison.yaml
    """
    from lexical_sae.runs.comparing.variants import load_variants, other_recipes

    study = load_variants(config, other_recipes, kind="sota_comparison", base=lambda settings: settings.recipe, out=out)
    compare_and_show(study, "recipes and baselines", names_texts, device, resume=resume, with_baselines=baselines)
