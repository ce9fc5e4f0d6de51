"""A run per seed, in folders: what classifiers and taggers share, whatever they learn from.

1. `run_seeds` opens a folder per seed, skips what is finished, and averages the figures.
2. `fit` trains one model, from its folder's checkpoint if there is one, with history and checkpoints in the folder.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from splade.config.schema import ExperimentConfig
from splade.evaluation.arena.cost import with_peak
from splade.evaluation.intervals import mean_and_interval
from splade.models.lexical_sae import LexicalSAE
from splade.progress import OnStep, Step, silent
from splade.training.loop import Callbacks, Interrupted, Trainer
from splade.training.recorders import recorder
from splade.training.run_folder import CONFIG, RESULTS, RunFolder
from splade.training.settings import TrainingConfig
from splade.training.stopping import EpochScores
from splade.training.tasks import Task

Results = dict[str, Any]
SeedRun = Callable[[int, RunFolder], Results]
"""Trains with a seed, leaves the model in the folder, and returns the figures, those of the test split as `test`."""


@dataclass(frozen=True)
class Watchers:
    """Who is told what while experiments run."""

    on_step: OnStep = silent
    on_note: Callable[[str], None] = lambda _: None
    """What was decided about the data, before the first step."""
    is_interrupted: Callable[[], bool] = lambda: False
    """Asked after every step: whether to save and stop."""

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
    """Cross-entropy that the constrained phase had to keep; None when circuits were not asked for."""
    multiplier: float
    """lambda at the end: how much the cross-entropy counted by then."""


def run_seeds(
    config: ExperimentConfig, run_seed: SeedRun, figures: Sequence[str], *, resume: bool, watchers: Watchers
) -> Results:
    """Run every seed of the settings and return what `results.json` of `output_dir` then says.

    With several seeds each has a folder `seed-N` of its own, and the `figures` of the test split are averaged. On
    `resume`, seeds that are finished are not trained again, and the one that was interrupted goes on.
    """
    require_one_experiment(config)
    place, own = Path(config.output_dir), seed_folders(config)
    if len(own) == 1:
        return _in_folder(config, config.evaluation.seeds[0], place, run_seed, resume=resume, watchers=watchers)
    with RunFolder.open(place, config.model_dump(mode="json"), resume=resume) as folder:
        runs = []
        for seed, path in own.items():
            is_begun = (path / CONFIG).is_file()
            try:
                runs.append(_in_folder(config, seed, path, run_seed, resume=is_begun, watchers=watchers))
            except BaseException:
                if not any((one / CONFIG).is_file() for one in own.values()):
                    folder.withdraw()
                raise
        means = {name: asdict(mean_and_interval([run["test"][name] for run in runs])) for name in figures}
        results = {"experiment_name": config.experiment_name, "runs": runs, "mean": means}
        folder.write_json(RESULTS, results)
    return results


def seed_folders(config: ExperimentConfig) -> dict[int, Path]:
    """Where each seed's run is: `output_dir` itself if there is one seed, else a folder `seed-N` in it."""
    seeds, place = config.evaluation.seeds, Path(config.output_dir)
    return {seed: place / f"seed-{seed}" if len(seeds) > 1 else place for seed in seeds}


def require_one_experiment(config: ExperimentConfig) -> None:
    """Refuse settings that describe several experiments where one is expected."""
    if config.datasets:
        raise ValueError(
            f"{config.experiment_name!r} names several data sets ({', '.join(config.datasets)}); run it with "
            "`lexical-sae multi-dataset`, or name one as data.dataset_name and take `datasets` out"
        )
    if config.variants:
        raise ValueError(
            f"{config.experiment_name!r} names several variants ({', '.join(config.variants)}); run it with "
            "`lexical-sae ablation`, or take `variants` out"
        )


def _in_folder(
    config: ExperimentConfig, seed: int, place: Path, run_seed: SeedRun, *, resume: bool, watchers: Watchers
) -> Results:
    """One seed's run, with everything it leaves in its folder."""
    with RunFolder.open(place, config.model_dump(mode="json"), seed=seed, resume=resume) as folder:
        if folder.results.exists():
            watchers.on_note(f"seed {seed} is finished: {folder.results}")
            return json.loads(folder.results.read_text(encoding="utf-8"))
        try:
            found, megabytes = with_peak(lambda: run_seed(seed, folder))
        except BaseException:
            # A misspelt data set must not occupy the folder.
            if not folder.has_begun:
                folder.withdraw()
            raise
        # Of a run that was interrupted, that of its last part.
        peak = None if megabytes is None else round(megabytes)
        results = {"experiment_name": config.experiment_name, **found, "peak_megabytes": peak}
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
    """Train the model; without a folder nothing is written, and in one the run goes on from its checkpoint."""
    checkpoint = folder.load_checkpoint() if folder else None
    with recorder(folder) if folder else nullcontext(lambda _: None) as record:
        callbacks = Callbacks(watchers.on_step, record, folder and folder.save_checkpoint, watchers.is_interrupted)
        trainer = Trainer(model, train, validation, settings, seed=seed, callbacks=callbacks)
        if checkpoint is not None:
            if checkpoint.warning:
                watchers.on_note(checkpoint.warning)
            trainer.load_state_dict(checkpoint.state)
        best = trainer.run()
    return Fitted(best, trainer.geco.tau, trainer.geco.multiplier)
