"""Remove a concept from a model and measure the effect: the command `surgery`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from lexical_sae.commands.console import console, watching
from lexical_sae.commands.options import Config, Resume, RunFolder, check_run, chosen_run
from lexical_sae.utils.errors import SettingsError

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from lexical_sae.intervene.concepts import OtherTexts, SurgeryPlan


def surgery(
    run: RunFolder = None,
    config: Config = None,
    concept: Annotated[
        str | None, typer.Option(help="Identity to remove: an identity column, or a --group. Default: the file's.")
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(help="Labels a group may be wrongly given, separated by commas: toxic. Default: the file's."),
    ] = None,
    words: Annotated[
        str | None, typer.Option(help="Words to remove, separated by commas; chosen if neither given nor in the file.")
    ] = None,
    group: Annotated[
        list[str] | None, typer.Option(help="A group by its words, as in muslim=muslim,muslims,islam; repeatable.")
    ] = None,
    swap: Annotated[
        list[str] | None, typer.Option(help="Words to swap in the texts, as in muslim:christian; repeatable.")
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(help="Tolerated gap of false positive rates. Default: the file's, or 0.05.", min=0, max=1),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            help="Maximum loss of accuracy when words are chosen. Default: the file's, or 0.01.", min=0, max=1
        ),
    ] = None,
    also: Annotated[Path | None, typer.Option(help="Another file of texts to measure the same removals on.")] = None,
    also_positive: Annotated[str, typer.Option(help="Its positive labels, separated by commas.")] = "",
    also_texts: Annotated[int, typer.Option(help="Maximum number of them, sampled at random.", min=1)] = 5000,
    out: Annotated[Path | None, typer.Option(help="Folder for the results; default: output_dir/surgery.")] = None,
    seed: Annotated[
        int | None, typer.Option(help="For random samples, probes and random words. Default: the file's, or 0.", min=0)
    ] = None,
    resume: Resume = False,
    device: Annotated[
        str, typer.Option(help="auto, cpu, cuda or mps, for training; the study runs on the CPU.")
    ] = "auto",
) -> None:
    """Remove words from a model: what gap that closes, what it costs, and how much of the concept still leaks.

    Example: lexical-sae surgery --config experiments/surgery.yaml

    Another concept: lexical-sae surgery --config experiments/surgery.yaml --concept jewish

    Writes surgery.json, surgery.html and leakage.svg; if words are removed, the lexicon, the edited model and its
    certificate too.
    """
    check_run(run, config, None)
    from lexical_sae.intervene.concepts import require_known, run_surgery
    from lexical_sae.report.progress import ProgressBars
    from lexical_sae.report.studies.concept_removal import study_view
    from lexical_sae.runs import experiment

    given = {
        "concept": concept,
        "words": words if words is None else _listed(words),
        "group_words": {name: _listed(some) for name, some in _pairs(group, "=", "group")} or None,
        "swaps": dict(_pairs(swap, ":", "swap")) or None,
        "epsilon": epsilon,
        "delta": delta,
        "seed": seed,
    }
    opened = chosen_run(run, config, None, device)
    labels = None if positive is None else _labels(positive, opened.data.label_names)
    plan = make_plan(opened.config.surgery, {**given, "positive": labels}, config or opened.folder)
    # Before anything long: a slip should not cost a training run.
    require_known(opened.data, plan)
    others = () if also is None else (_other_texts(also, also_positive, also_texts, plan.seed),)
    if config is not None:
        with watching() as watchers:
            experiment.ensure_trained(opened, resume=resume, watchers=watchers)
    place = out or opened.folder / "surgery"
    with ProgressBars(console) as bars:
        results = run_surgery(opened.model_folder, opened.data, plan, place, others, bars)
    console.print(study_view(results))
    console.print(Text(f"written to {place}; open {place / 'surgery.html'}", style="dim"))


def make_plan(section: "SurgeryPlan | None", given: Mapping[str, Any], source: Path) -> "SurgeryPlan":
    """A file's section with the options that were given (not None) laid over it."""
    from pydantic import ValidationError

    from lexical_sae.intervene.concepts import SurgeryPlan
    from lexical_sae.utils.part import first_complaint

    plain = {} if section is None else section.model_dump()
    said = {**plain, **{name: value for name, value in given.items() if value is not None}}
    if missing := [name for name in ("concept", "positive") if name not in said]:
        options = " and ".join(f"--{name}" for name in missing)
        raise SettingsError(
            f"{source} has no section `surgery`, so what to remove is not known: give {options}, or write "
            "surgery: {concept: muslim, positive: [toxic]} into the file"
        )
    try:
        return SurgeryPlan.model_validate(said)
    except ValidationError as error:
        raise SettingsError(f"what to remove is not clear ({first_complaint(error)})") from error


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _labels(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """Labels separated by commas, or one that has a comma itself."""
    return (text.strip(),) if text.strip() in known else _listed(text)


def _pairs(options: Sequence[str] | None, mark: str, option: str) -> list[tuple[str, str]]:
    return [_halves(one, mark, option) for one in options or ()]


def _halves(text: str, mark: str, option: str) -> tuple[str, str]:
    one, found, other = (part.strip() for part in text.partition(mark))
    if not (one and found and other):
        raise SettingsError(f"--{option} {text!r} lacks a side; write it as in --{option} muslim{mark}christian")
    return one, other


def _other_texts(path: Path, positive: str, most: int, seed: int) -> "OtherTexts":
    """The texts of another file, of which the carved test part is read, or some of it at random."""
    from lexical_sae.data import read_text_dataset
    from lexical_sae.data.sampling import sample_rows
    from lexical_sae.inference.labels import label_index
    from lexical_sae.intervene.concepts import OtherTexts

    if not _listed(positive):
        raise SettingsError(f"--also {path} needs its positive labels, as in --also-positive BAD")
    dataset = read_text_dataset(path)
    split = dataset.test.take(sample_rows(len(dataset.test), most, seed))
    places = tuple(
        label_index(dataset.label_names, label, "--also-positive") for label in _labels(positive, dataset.label_names)
    )
    return OtherTexts(path.name, split, places)
