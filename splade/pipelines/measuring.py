"""One of several experiments: trained, evaluated and named, and what came of it in one row of figures."""

from pathlib import Path
from typing import Any

from splade.config.schema import ExperimentConfig
from splade.evaluation.intervals import mean_and_interval
from splade.pipelines.evaluating import read_evaluation
from splade.pipelines.experiment import run_experiment
from splade.pipelines.naming import read_names, run_names
from splade.report.run_figures import RunFigures
from splade.runs import Watchers, seed_folders
from splade.training.run_folder import CONFIG, EVALUATION, RESULTS

CIRCUIT = 0.1
"""Share of a text's active words that is its circuit in the tables."""


def is_begun(config: ExperimentConfig) -> bool:
    """Whether there is something to go on with."""
    return (Path(config.output_dir) / CONFIG).is_file()


def measure_run(config: ExperimentConfig, names_texts: int, device: str, watchers: Watchers) -> RunFigures:
    """An experiment's figures; what is finished is read, not done again. Names are those of the first seed's model."""
    place = Path(config.output_dir)
    was_finished = (place / RESULTS).is_file()
    results = run_experiment(config, resume=is_begun(config), device=device, watchers=watchers)
    runs = results.get("runs", [results])
    names = read_names(place, min(names_texts, runs[0]["test"]["texts"])) if was_finished else None
    if names is None:
        on_step = watchers.until_interrupted(f"measuring the names of {place.name}")
        names = run_names(config, texts=names_texts, on_step=on_step)
    scores = names["model"]
    accuracy = mean_and_interval([run["test"]["accuracy"] for run in runs])
    return RunFigures(
        active_words=mean_and_interval([run["test"]["active_words"] for run in runs]).mean,
        accuracy=accuracy.mean,
        accuracy_low=accuracy.low,
        accuracy_high=accuracy.high,
        delete=scores["delete"]["passed"]["share"],
        follow=scores["follow"]["passed"]["share"],
        function_words=scores["function_words"]["share"],
        neighbourhood=scores["neighbourhood"]["share"],
        **_circuits(config),
        seconds=float(sum(run["seconds"] for run in runs)),
        peak_megabytes=max(
            (run["peak_megabytes"] for run in runs if run.get("peak_megabytes") is not None), default=None
        ),
        texts=runs[0]["test"]["texts"],
        folder=place.name,
    )


def _circuits(config: ExperimentConfig) -> dict[str, float | None]:
    """Agreement of the circuit alone and of a random one with the whole, over all seeds that were evaluated."""
    folders, texts = seed_folders(config).values(), config.evaluation.texts
    found = [saved for folder in folders if (saved := read_evaluation(folder / EVALUATION, texts))]
    sizes = [size for saved in found for size in saved["completeness"]["sizes"] if size["fraction"] == CIRCUIT]
    return {"circuit": _mean(sizes, "circuit"), "random_circuit": _mean(sizes, "random")}


def _mean(sizes: list[dict[str, Any]], kind: str) -> float | None:
    values = [size[kind]["agreement"]["mean"] for size in sizes]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
