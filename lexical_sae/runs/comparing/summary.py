"""One of several experiments: trained, evaluated and named, and what came of it in one row of figures."""

from pathlib import Path
from typing import Any

from lexical_sae.config.schema import ExperimentConfig
from lexical_sae.evaluation.intervals import mean_and_interval
from lexical_sae.report.studies.run_figures import RunFigures
from lexical_sae.runs.experiment import run_experiment
from lexical_sae.runs.folder import CONFIG
from lexical_sae.runs.inputs import require_classes
from lexical_sae.runs.measuring.name_tests import name_runs
from lexical_sae.runs.run import Run
from lexical_sae.runs.seeds import Watchers, over_seeds

CIRCUIT = 0.1
"""Share of a text's active words that is its circuit in the tables."""


def is_begun(config: ExperimentConfig) -> bool:
    """Whether there is a run to resume."""
    return (Path(config.output_dir) / CONFIG).is_file()


def measure_run(config: ExperimentConfig, names_texts: int, device: str, watchers: Watchers) -> RunFigures:
    """An experiment's figures, names on so many test texts; what is finished is read, not done again."""
    require_classes(config, "a comparison of runs")
    place = Path(config.output_dir)
    evaluation = config.evaluation.model_copy(update={"names_texts": names_texts})
    config = config.model_copy(update={"evaluation": evaluation})
    results = run_experiment(config, resume=is_begun(config), device=device, watchers=watchers)
    runs = results.get("runs", [results])
    run = Run.of(config, device)
    # Measured by now, unless `evaluation.after_training` is off.
    named = [found["model"] for found in name_runs(run, watchers).values()]
    names = over_seeds(named) if named else {"delete": {}, "follow": {}}
    accuracy = mean_and_interval([run["test"]["accuracy"] for run in runs])
    return RunFigures(
        active_words=mean_and_interval([run["test"]["active_words"] for run in runs]).mean,
        accuracy=accuracy.mean,
        accuracy_low=accuracy.low,
        accuracy_high=accuracy.high,
        **_with_ends("delete", names["delete"].get("passed")),
        **_with_ends("follow", names["follow"].get("passed")),
        function_words=_mean(names.get("function_words")),
        lexical_neighbours=_mean(names.get("lexical_neighbours")),
        presence=_mean(names.get("presence", {}).get("auc")),
        presence_shuffled=_mean(names.get("presence", {}).get("shuffled")),
        **_context(names.get("context")),
        **_circuits(run),
        seconds=float(sum(run["seconds"] for run in runs)),
        peak_megabytes=max(
            (run["peak_megabytes"] for run in runs if run.get("peak_megabytes") is not None), default=None
        ),
        texts=runs[0]["test"]["texts"],
        folder=place.name,
    )


def _context(scores: dict[str, Any] | None) -> dict[str, float | None]:
    """The main context measures over all seeds; none in older files."""
    scores = scores or {}
    places = {
        "context_free": ("accuracy", "context_free"),
        "leakage": ("leakage", "points"),
        "shifts": ("shifts", "per_text"),
        "negated_positive": ("negation", "negated_positive"),
        "negated_negative": ("negation", "negated_negative"),
        "independence": ("independence", "change"),
    }
    return {name: _mean((scores.get(part) or {}).get(figure)) for name, (part, figure) in places.items()}


def _circuits(run: Run) -> dict[str, float | None]:
    """Agreement of the circuit alone and of a random one with the whole, over all seeds that were evaluated."""
    texts = run.config.evaluation.texts
    found = [saved for one in run.seeds if (saved := one.evaluation_on(texts))]
    sizes = over_seeds([saved["completeness"]["sizes"] for saved in found]) if found else []
    size = next((size for size in sizes if size["fraction"] == CIRCUIT), {"circuit": {}, "random": {}})
    return {
        f"{prefix}circuit": _mean(size[kind].get("agreement"))
        for prefix, kind in (("", "circuit"), ("random_", "random"))
    }


def _mean(figure: dict[str, Any] | None) -> float | None:
    """Of a figure over seeds; None where no seed knows it."""
    return figure["mean"] if figure else None


def _with_ends(name: str, figure: dict[str, Any] | None) -> dict[str, float | None]:
    """A figure over seeds by its name, and the ends of its interval."""
    return {
        f"{name}{end}": figure[key] if figure else None
        for end, key in (("", "mean"), ("_low", "low"), ("_high", "high"))
    }
