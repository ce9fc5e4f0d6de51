"""The frontier of an experiment: one point per value of a key, with its accuracy, active words and name scores.

1. Every value is written into the settings and checked, before anything is trained.
2. Each point is the experiment in a folder of its own (`shifts-2`), so an interrupted sweep goes on where it stopped,
   and a resumed one keeps the points that are finished.
3. After every point the frontier so far is written: `frontier.csv` and `frontier.svg`.
"""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from lexical_sae.config.schema import ExperimentConfig
from lexical_sae.report.charts.frontier import SHIFTS, Frontier, FrontierPoint, frontier_svg, value_text
from lexical_sae.report.studies.run_figures import RunFigures
from lexical_sae.runs.comparing.summary import is_begun, measure_run
from lexical_sae.runs.comparing.variants import with_changes
from lexical_sae.runs.folder import BASELINES, DECISIONS, RESULTS
from lexical_sae.runs.measuring.baselines import measured_baselines, read_baselines
from lexical_sae.runs.run import Run
from lexical_sae.runs.seeds import Watchers, require_one_experiment
from lexical_sae.training.settings import TrainingConfig
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.files import read_written, write_text

ACTIVE_WORDS = "training.active_target"
PREFIXES = {ACTIVE_WORDS: "words", SHIFTS: "shifts"}
TABLE, PICTURE = "frontier.csv", "frontier.svg"

Number = int | float


@dataclass(frozen=True)
class Planned:
    """A point before it is trained."""

    value: Number
    config: ExperimentConfig

    @property
    def folder(self) -> Path:
        return Path(self.config.output_dir)


class Yardsticks(NamedTuple):
    """Accuracies by name, and the test texts they are on."""

    texts: int
    digest: str | None
    """Of the texts and their labels; None in older files."""
    accuracy: dict[str, float]


def plan(config: ExperimentConfig, key: str, values: Sequence[Number]) -> list[Planned]:
    """One experiment per value; a key or value that the settings do not allow is refused."""
    if not values:
        raise SettingsError(f"there are no values for {key}; give numbers with commas between them, such as 20,40,60")
    if twice := [value for value in values if values.count(value) > 1]:
        raise SettingsError(f"{key} is to be {twice[0]} twice; give each value once")
    _require_use(config, key)
    place = Path(config.output_dir)
    return [
        Planned(
            value,
            with_changes(config, _changes(key, value)).model_copy(
                update={
                    "output_dir": str(place / f"{_prefix(key)}{value_text(value)}"),
                    "experiment_name": f"{config.experiment_name}, {key} {value_text(value)}",
                }
            ),
        )
        for value in values
    ]


def _changes(key: str, value: Number) -> dict[str, Any]:
    """What a value changes in the settings: no shifts is a model without context, unlimited ones have no constraint."""
    if key != SHIFTS:
        return {key: value}
    if value == 0:
        return {"model.context": None}
    return {"training.count": None} if value == math.inf else {ACTIVE_WORDS: value}


def _require_use(config: ExperimentConfig, key: str) -> None:
    """Refuse to sweep what the experiment has none of, or does not heed."""
    is_literal = config.model.literal is not None
    if key == SHIFTS and not is_literal:
        raise SettingsError(
            f"recipe {config.recipe} has no table of words that context could shift; sweep its active words with "
            "--active-words"
        )
    if key == ACTIVE_WORDS and is_literal:
        raise SettingsError(
            f"the words of recipe {config.recipe} are those of the text, however many; sweep how many of them context "
            "shifts with --shifts"
        )
    if key == ACTIVE_WORDS and not _heeds_active_target(config.training):
        raise SettingsError(
            f"{ACTIVE_WORDS} changes nothing in this experiment (recipe {config.recipe}): it has no count constraint, "
            "no calibrated start and no term that aims at a number of words. Sweep another key with --set"
        )


def _heeds_active_target(training: TrainingConfig) -> bool:
    takes_it = any(getattr(term, "target", 0.0) is None for term in training.objective.terms)
    has_constraint = training.count is not None or training.calibrated_start is not None
    return takes_it or has_constraint or training.controller.sparsity_aware


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
    """Train and measure a point per value, and write the frontier to `output_dir`, in the order of the values.

    On `resume` nothing that is finished is done again, and finished points stay, also those of other values.
    """
    require_one_experiment(config)
    points, place = plan(config, key, values), Path(config.output_dir)
    _require_room(place, key, points, resume=resume)
    if resume:
        # Those first, as reading them takes no time: what is written from then on has them all.
        finished = _finished_values(place, key)
        points = plan(config, key, [*finished, *(value for value in values if value not in finished)])
    baselines = _baselines(config, device, watchers, is_wanted=with_baselines, resume=resume)
    frontier = Frontier(config.experiment_name, key, (), {})
    measured: list[tuple[Planned, FrontierPoint]] = []
    for number, point in enumerate(points, start=1):
        watchers.on_note(f"point {number} of {len(points)}: {key} {value_text(point.value)}, in {point.folder}")
        figures = measure_run(point.config, names_texts, device, watchers)
        measured.append((point, FrontierPoint(value=point.value, **asdict(figures))))
        found = sorted((one for _, one in measured), key=lambda one: one.value)
        frontier = replace(frontier, points=tuple(found), baselines=_comparable(baselines, measured))
        write_text(place / TABLE, frontier_csv(frontier))
        write_text(place / PICTURE, frontier_svg(frontier))
    if baselines and not frontier.baselines:
        watchers.on_note(f"{place / BASELINES} was measured on other test texts, so it is not shown")
    return frontier


def frontier_csv(frontier: Frontier) -> str:
    """A header, and a row per point; what was not measured is left empty."""
    file = io.StringIO()
    columns = ["key", "value", *(field.name for field in fields(RunFigures))]
    writer = csv.DictWriter(file, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({"key": frontier.key, **asdict(point), "value": point.value_text} for point in frontier.points)
    return file.getvalue()


def _prefix(key: str) -> str:
    """How the folders of a key's points begin."""
    return f"{PREFIXES.get(key, key)}-"


def _finished_values(place: Path, key: str) -> list[Number]:
    """Values of the key whose runs in the folder are finished, in order."""
    prefix = _prefix(key)
    named = (path.parent.name for path in place.glob(f"*/{RESULTS}"))
    found = (_number(name.removeprefix(prefix)) for name in named if name.startswith(prefix))
    return sorted(value for value in found if value is not None)


def _number(text: str) -> Number | None:
    """The number that is written so in a folder's name; None where it is something else, such as `list` or `020`."""
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        if math.isfinite(value) and str(value) == text:
            return value
    return math.inf if text == value_text(math.inf) else None


def _require_room(place: Path, key: str, points: Sequence[Planned], *, resume: bool) -> None:
    """Refuse to mix with another sweep, and to resume what was never begun."""
    if (swept := _swept_key(place / TABLE)) not in (None, key):
        raise SettingsError(
            f"{place / TABLE} is of a sweep over {swept}, not over {key}; choose another folder with --out, or sweep "
            f"{swept} here"
        )
    begun = [point.folder for point in points if is_begun(point.config)]
    left = [*begun, *(path for path in (place / TABLE,) if path.is_file())]
    if left and not resume:
        raise SettingsError(f"{left[0]} is there already; continue with --resume, or choose another folder with --out")
    if resume and not left and not (place / BASELINES).is_file():
        raise SettingsError(f"there is no sweep to resume in {place}; start it without --resume")


def _swept_key(table: Path) -> str | None:
    """The key that a frontier's table is about; None where there is no table, or none of a sweep."""
    if not table.is_file():
        return None
    text = read_written(table, "table of a sweep", "choose another folder with --out")
    return next(csv.DictReader(io.StringIO(text)), {}).get("key")


def _baselines(
    config: ExperimentConfig, device: str, watchers: Watchers, *, is_wanted: bool, resume: bool
) -> Yardsticks | None:
    """The folder's `baselines.json`, measured first if wanted; None if there is none."""
    path = Path(config.output_dir) / BASELINES
    if is_wanted:
        found = measured_baselines(config, device, watchers, again=not resume)
    elif path.is_file():
        found = read_baselines(path)
    else:
        return None
    accuracy = {name: scores["accuracy"] for name, scores in found["baselines"].items()}
    return Yardsticks(found["test_texts"], found.get("test_digest"), accuracy)


def _comparable(baselines: Yardsticks | None, measured: Sequence[tuple[Planned, FrontierPoint]]) -> dict[str, float]:
    """Accuracies of the baselines, if they were measured on the test texts of all the points."""
    if baselines is None:
        return {}
    are_on = all(_is_on(baselines, one.config, point.texts) for one, point in measured)
    return baselines.accuracy if are_on else {}


def _is_on(baselines: Yardsticks, config: ExperimentConfig, texts: int) -> bool:
    """Whether the baselines were measured on an experiment's test texts: those of its first seed.

    Where one of the two did not keep which texts those were, as many will do.
    """
    own = Run.of(config).first
    if baselines.digest is None or not (own.folder / DECISIONS).is_file():
        return texts == baselines.texts
    return own.decisions.digest == baselines.digest
