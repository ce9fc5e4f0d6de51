"""The frontier of an experiment: one point per value of a key, with its accuracy, active words and name scores.

1. Every value is written into the settings and checked, before anything is trained.
2. Each point is the experiment in a folder of its own (`words-20`), so an interrupted sweep goes on where it stopped.
3. After every point the frontier so far is written: `frontier.csv` and `frontier.svg`.
"""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from splade.config.load import parse_config
from splade.config.schema import ExperimentConfig
from splade.evaluation.intervals import mean_and_interval
from splade.files import write_text
from splade.pipelines import run_baselines, run_experiment, run_names
from splade.progress import OnStep, Step
from splade.report.frontier import Frontier, FrontierPoint, frontier_svg
from splade.runs import Watchers
from splade.training.loop import Interrupted
from splade.training.run_folder import CONFIG, RESULTS
from splade.training.settings import TrainingConfig

ACTIVE_WORDS = "training.active_target"
TABLE, PICTURE, BASELINES, NAMES = "frontier.csv", "frontier.svg", "baselines.json", "names.json"
DENSE = "dense twin"

Number = int | float


@dataclass(frozen=True)
class Planned:
    """A point before it is trained."""

    value: Number
    config: ExperimentConfig

    @property
    def folder(self) -> Path:
        return Path(self.config.output_dir)

    @property
    def is_begun(self) -> bool:
        return (self.folder / CONFIG).is_file()


class Yardsticks(NamedTuple):
    """Accuracies by name, and the number of test texts they are on."""

    texts: int
    accuracy: dict[str, float]


def plan(config: ExperimentConfig, key: str, values: Sequence[Number]) -> list[Planned]:
    """One experiment per value; a key or value that the settings do not allow is refused."""
    if not values:
        raise ValueError(f"there are no values for {key}; give numbers with commas between them, such as 20,40,60")
    if twice := [value for value in values if values.count(value) > 1]:
        raise ValueError(f"{key} is to be {twice[0]} twice; give each value once")
    if key == ACTIVE_WORDS and not _heeds_active_target(config.training):
        raise ValueError(
            f"{ACTIVE_WORDS} changes nothing in this experiment (recipe {config.recipe}): it has no count constraint, "
            "no calibrated start and no term that aims at a number of words. Sweep another key with --set"
        )
    name = "words" if key == ACTIVE_WORDS else key
    place = Path(config.output_dir)
    return [
        Planned(
            value,
            with_value(config, key, value).model_copy(
                update={
                    "output_dir": str(place / f"{name}-{value}"),
                    "experiment_name": f"{config.experiment_name}, {key} {value}",
                }
            ),
        )
        for value in values
    ]


def _heeds_active_target(training: TrainingConfig) -> bool:
    takes_it = any(getattr(term, "target", 0.0) is None for term in training.objective.terms)
    has_constraint = training.count is not None or training.calibrated_start is not None
    return takes_it or has_constraint or training.controller.sparsity_aware


def with_value(config: ExperimentConfig, key: str, value: Number) -> ExperimentConfig:
    """The settings with one of them changed, as if the experiment's file said so.

    Parts of a list are counted from 0: `training.objective.terms.0.weight`.
    """
    settings = json.loads(config.model_dump_json())
    if config.vpe.enabled:
        # The vpe section wrote it, and will again: with the new value, if that is the key.
        settings["model"]["expander"] = None
    return parse_config(yaml.safe_dump(_changed(settings, key.split("."), value, key)), source="the sweep")


def _changed(section: Any, names: Sequence[str], value: Number, key: str) -> Any:
    if not names:
        return value
    name, *rest = names
    if isinstance(section, list) and name.isdecimal() and int(name) < len(section):
        return [_changed(item, rest, value, key) if i == int(name) else item for i, item in enumerate(section)]
    if section is None or isinstance(section, dict):
        known = section or {}
        return {**known, name: _changed(known.get(name), rest, value, key)}
    raise ValueError(f"{key} is unknown: there is no {name!r} in {section!r}")


def run_sweep(
    config: ExperimentConfig,
    key: str,
    values: Sequence[Number],
    *,
    names_texts: int = 200,
    with_baselines: bool = False,
    resume: bool = False,
    device: str = "auto",
    watchers: Watchers = Watchers(),
) -> Frontier:
    """Train and measure a point per value, and write the frontier to `output_dir`.

    On `resume` nothing that is finished is done again. Names are those of the first seed's model.
    """
    points, place = plan(config, key, values), Path(config.output_dir)
    _require_room(place, points, resume=resume)
    yardsticks = _yardsticks(config, device, watchers, is_wanted=with_baselines, resume=resume)
    frontier = Frontier(config.experiment_name, key, (), {})
    for number, point in enumerate(points, start=1):
        watchers.on_note(f"point {number} of {len(points)}: {key} {point.value}, in {point.folder}")
        found = (*frontier.points, _measure(point, names_texts, device, watchers))
        frontier = replace(frontier, points=found, yardsticks=_comparable(yardsticks, found))
        write_text(place / TABLE, frontier_csv(frontier))
        write_text(place / PICTURE, frontier_svg(frontier))
    if yardsticks and not frontier.yardsticks:
        watchers.on_note(f"{place / BASELINES} was measured on other test texts, so it is not shown")
    return frontier


def frontier_csv(frontier: Frontier) -> str:
    """A header, and a row per point; what was not measured is left empty."""
    file = io.StringIO()
    columns = ["key", *(field.name for field in fields(FrontierPoint))]
    writer = csv.DictWriter(file, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({"key": frontier.key, **asdict(point)} for point in frontier.points)
    return file.getvalue()


def _require_room(place: Path, points: Sequence[Planned], *, resume: bool) -> None:
    """Refuse to mix with another sweep, and to resume what was never begun."""
    begun = [point.folder for point in points if point.is_begun]
    left = [*begun, *(path for path in (place / TABLE,) if path.is_file())]
    if left and not resume:
        raise ValueError(f"{left[0]} is there already; go on with --resume, or choose another folder with --out")
    if resume and not left and not (place / BASELINES).is_file():
        raise ValueError(f"there is no sweep to resume in {place}; start it without --resume")


def _yardsticks(
    config: ExperimentConfig, device: str, watchers: Watchers, *, is_wanted: bool, resume: bool
) -> Yardsticks | None:
    """What `baselines.json` of the folder says, measured first if wanted; None if there is none."""
    path = Path(config.output_dir) / BASELINES
    found = _read_yardsticks(path) if path.is_file() else None
    if is_wanted and not (resume and found and DENSE in found.accuracy):
        watchers.on_note("before the points: the dense twin and TF-IDF")
        run_baselines(config, device, on_step=_until_interrupted(watchers, "training the dense twin"))
        return _read_yardsticks(path)
    return found


def _read_yardsticks(path: Path) -> Yardsticks:
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        accuracy = {name: float(scores["accuracy"]) for name, scores in saved["baselines"].items()}
        return Yardsticks(saved["test_texts"], accuracy)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not what `lexical-sae baselines` writes; delete it or make it anew") from error


def _comparable(yardsticks: Yardsticks | None, points: Sequence[FrontierPoint]) -> dict[str, float]:
    """Accuracies of the yardsticks, if they were measured on as many test texts as all the points."""
    if yardsticks is None or any(point.texts != yardsticks.texts for point in points):
        return {}
    return yardsticks.accuracy


def _measure(point: Planned, names_texts: int, device: str, watchers: Watchers) -> FrontierPoint:
    """A point's figures; what is finished is read, not done again."""
    was_finished = (point.folder / RESULTS).is_file()
    results = run_experiment(point.config, resume=point.is_begun, device=device, watchers=watchers)
    runs = results.get("runs", [results])
    accuracy = mean_and_interval([run["test"]["accuracy"] for run in runs])
    names = _saved_names(point.folder, min(names_texts, runs[0]["test"]["texts"])) if was_finished else None
    if names is None:
        on_step = _until_interrupted(watchers, f"measuring the names of {point.folder.name}")
        names = run_names(point.config, texts=names_texts, on_step=on_step)
    scores = names["model"]
    return FrontierPoint(
        value=point.value,
        active_words=mean_and_interval([run["test"]["active_words"] for run in runs]).mean,
        accuracy=accuracy.mean,
        accuracy_low=accuracy.low,
        accuracy_high=accuracy.high,
        delete=scores["delete"]["passed"]["share"],
        follow=scores["follow"]["passed"]["share"],
        function_words=scores["function_words"]["share"],
        neighbourhood=scores["neighbourhood"]["share"],
        seconds=float(sum(run["seconds"] for run in runs)),
        texts=runs[0]["test"]["texts"],
        folder=point.folder.name,
    )


def _saved_names(folder: Path, texts: int) -> dict[str, Any] | None:
    """What `names.json` says, if it was measured on so many texts."""
    path = folder / NAMES
    names = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    return names if names and names["model"]["texts"] == texts else None


def _until_interrupted(watchers: Watchers, work: str) -> OnStep:
    """Progress of work that saves nothing on the way: it stops at once when somebody asks."""

    def on_step(step: Step) -> None:
        watchers.on_step(step)
        if watchers.is_interrupted():
            raise Interrupted(f"stopped while {work}")

    return on_step
