"""A run per seed, in folders: what classifiers and taggers share, whatever they learn from.

1. `run_seeds` opens a folder per seed, skips what is finished, and averages the figures.
2. `fit` trains one model, from its folder's checkpoint if there is one, with history and checkpoints in the folder.
3. Records go to `history.jsonl`, to the trackers that the settings name, and to callbacks.
4. `over_seeds` averages what was measured of several models: every figure with its interval across seeds.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from lexical_sae.config.schema import ExperimentConfig
from lexical_sae.data import TextSplit
from lexical_sae.evaluation.intervals import mean_and_interval
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.runs.folder import CONFIG, RESULTS, RunFolder, write_json
from lexical_sae.runs.run import Run
from lexical_sae.training.callbacks import Begun, Callbacks, Record, Told, trackers
from lexical_sae.training.loop import Trainer
from lexical_sae.training.processes import current
from lexical_sae.training.settings import TrainingConfig
from lexical_sae.training.stopping import EpochScores, Interrupted
from lexical_sae.training.tasks import Task
from lexical_sae.utils.cost import with_peak
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.progress import OnStep, Step, silent

Results = dict[str, Any]
MEANS = ("mean", "share")
"""A figure with an interval over texts has one of these. Others, most of them controls, are plain numbers."""
WORST = "worst"
"""How names of figures begin that are the worst of all texts: the worst of all seeds is kept of them."""

SeedRun = Callable[[Run, RunFolder], Results]
"""Trains one seed, leaves the model in the folder, and returns the figures, those of the test split as `test`."""


@dataclass(frozen=True)
class Watchers:
    """Callbacks for progress and notes, and for stopping."""

    on_step: OnStep = silent
    on_note: Callable[[str], None] = lambda _: None
    """What was decided about the data, before the first step."""
    is_interrupted: Callable[[], bool] = lambda: False
    """Asked after every step: whether to save and stop."""
    is_out_of_time: Callable[[], bool] = lambda: False
    """Asked after every step: whether to end training there, with the best weights so far."""
    callbacks: Sequence[Any] = ()
    """Objects with methods of `training.callbacks.Callback`."""

    def until_interrupted(self, work: str) -> OnStep:
        """Progress of work that saves nothing on the way: it stops at once when somebody asks."""

        def on_step(step: Step) -> None:
            self.on_step(step)
            if self.is_interrupted():
                raise Interrupted(f"stopped while {work}")

        return on_step


class Fitted(NamedTuple):
    """How training ended; the model holds the best weights."""

    best: EpochScores
    """Of the epoch that was kept."""
    tau_ce: float | None
    """Cross-entropy that the constrained phase had to keep; None where there were no circuit objectives."""
    multiplier: float
    """lambda at the end: how much the cross-entropy counted by then."""
    joined: TextSplit | None = None
    """Training and validation texts, where the table was fitted on both in the end."""


def run_seeds(run: Run, run_seed: SeedRun, figures: Sequence[str], *, resume: bool, watchers: Watchers) -> Results:
    """Run every seed of the settings; what `results.json` of the run's folder then holds.

    With several seeds each has a folder `seed-N` of its own, and the `figures` of the test split are averaged. On
    `resume`, finished seeds are not trained again, and the interrupted one is resumed.
    """
    config = run.config
    require_one_experiment(config)
    if len(config.evaluation.seeds) == 1:
        return _in_folder(run, run_seed, resume=resume, watchers=watchers)
    with RunFolder.open(run.folder, config.model_dump(mode="json"), resume=resume) as folder:
        results = []
        for one in run.seeds:
            is_begun = (one.folder / CONFIG).is_file()
            try:
                results.append(_in_folder(one, run_seed, resume=is_begun, watchers=watchers))
            except BaseException:
                if not any((other.folder / CONFIG).is_file() for other in run.seeds):
                    folder.withdraw()
                raise
        of_kind = [one["key"] for one in results[0]["test"].get("figures", ())]
        known = [name for name in (*of_kind, *figures) if all(name in found["test"] for found in results)]
        means = {name: asdict(mean_and_interval([found["test"][name] for found in results])) for name in known}
        found = {"experiment_name": config.experiment_name, "runs": results, "mean": means}
        folder.write_json(RESULTS, found)
    return found


def require_one_experiment(config: ExperimentConfig) -> None:
    """Refuse settings that describe several experiments where one is expected."""
    if config.datasets:
        raise SettingsError(
            f"{config.experiment_name!r} names several data sets ({', '.join(config.datasets)}); run it with "
            "`lexical-sae multi-dataset`, or name one as data.dataset_name and take `datasets` out"
        )
    if config.variants:
        raise SettingsError(
            f"{config.experiment_name!r} names several variants ({', '.join(config.variants)}); run it with "
            "`lexical-sae ablation`, or take `variants` out"
        )


def _in_folder(run: Run, run_seed: SeedRun, *, resume: bool, watchers: Watchers) -> Results:
    """One seed's results, with everything it leaves in its folder."""
    settings = run.config.model_dump(mode="json")
    with RunFolder.open(run.folder, settings, seed=run.seed, resume=resume) as folder:
        if folder.results.exists():
            watchers.on_note(f"seed {run.seed} is finished: {folder.results}")
            return run.results
        try:
            found, megabytes = with_peak(lambda: run_seed(run, folder))
        except BaseException:
            # A misspelt data set must not occupy the folder.
            if not folder.has_begun:
                folder.withdraw()
            raise
        # Of a run that was interrupted, that of its last part.
        peak = None if megabytes is None else round(megabytes)
        results = {"experiment_name": run.config.experiment_name, **found, "peak_megabytes": peak}
        # Last: a run with results is finished.
        folder.write_json(RESULTS, results)
        folder.drop_checkpoints()
    return results


def fit(
    model: LexicalSAE,
    train: Task,
    validation: Task,
    settings: TrainingConfig,
    seed: int,
    folder: RunFolder | None,
    watchers: Watchers,
) -> Fitted:
    """Train the model; without a folder nothing is written, and in one the run goes on from its checkpoint.

    Of several processes the first one has the folder, and tells the others where to go on.
    """
    listeners = [*trackers(settings.report_to), *watchers.callbacks]
    checkpoint = current().from_first(folder.load_checkpoint() if folder else None)
    with closing(Told(listeners if current().is_first else [])) as told:

        def record(values: Record) -> None:
            if folder:
                folder.append_history(values)
            told.record(values)

        earlier = folder.read_history() if folder else ()
        told.begin(Begun(settings.model_dump(mode="json"), seed, folder and folder.path, tuple(earlier)))
        save = folder and folder.save_checkpoint
        callbacks = Callbacks(watchers.on_step, record, save, watchers.is_interrupted, watchers.is_out_of_time)
        trainer = Trainer(model, train, validation, settings, seed=seed, callbacks=callbacks)
        if checkpoint is not None:
            if checkpoint.warning:
                watchers.on_note(checkpoint.warning)
            trainer.load_state_dict(checkpoint.state)
        best = trainer.run()
        if trainer.has_dropped_context:
            watchers.on_note(
                "context is left out, the table of words alone is the model: with context it was not "
                f"{model.output.better} beyond noise (one standard error of the difference)"
            )
        told.end(asdict(best))
    return Fitted(best, trainer.geco.tau, trainer.geco.multiplier)


def with_measurements(run: Run) -> Results:
    """The results of a run, of several seeds with `measured`, their measurements averaged; in `results.json` too.

    What was not measured of every seed is not averaged. The results of one seed come back as they are.
    """
    results, asked = run.results, run.config.evaluation
    if len(asked.seeds) < 2:
        return results
    of_seeds = {
        "evaluation": [one.evaluation_on(asked.texts) for one in run.seeds],
        "names": [one.names_on(asked.names_texts) for one in run.seeds],
    }
    measured = {name: over_seeds(found) for name, found in of_seeds.items() if None not in found}
    if measured:
        results = {**results, "measured": measured}
        write_json(run.folder / RESULTS, results)
    return results


def over_seeds(found: Sequence[Any], name: str = "") -> Any:
    """The measurements of several seeds as one, each figure in them with Student's 95 % interval over seeds.

    Beside these stays what is the same for all, as it says what they are of (a label, the size of a circuit); what else
    differs (a count, a text) is None, and left out of mappings. Rows of a list go by their first field, and must be
    there for all.

    Example: `{"words": 3, "flips": {"mean": 0.2, ...}}` and the same with 0.4 -> words 3, flips a mean of 0.3
    """
    first = found[0]
    if all(isinstance(one, Mapping) for one in found):
        if kind := next((kind for kind in MEANS if kind in first), None):
            return _interval([one.get(kind) for one in found])
        shared = [key for key in first if all(key in one for one in found)]
        merged = {key: over_seeds([one[key] for one in found], key) for key in shared}
        return {key: value for key, value in merged.items() if value is not None}
    if all(isinstance(one, list) for one in found):
        rows = [{_name(row): row for row in one} for one in found]
        return [over_seeds([one[name] for one in rows]) for name in rows[0] if all(name in one for one in rows)]
    if all(one == first for one in found):
        return first
    if all(isinstance(one, float) for one in found):
        return max(found) if name.startswith(WORST) else _interval(found)
    return None


def _interval(values: Sequence[float | None]) -> dict[str, Any] | None:
    """Over the seeds for which it is known."""
    known = [value for value in values if value is not None]
    return asdict(mean_and_interval(known)) if known else None


def _name(row: Any) -> Any:
    return next(iter(row.values())) if isinstance(row, Mapping) else row
