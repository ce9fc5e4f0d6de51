"""From an experiment's settings to trained, measured models, one per seed; for classifiers and taggers alike.

1. The data and the model are made from the settings and the seed.
2. The loop trains; history and checkpoints go to the run's folder.
3. Validation texts determine when the model should warn or abstain (`calibrating`).
4. The best weights are scored on the test split, which nothing before has seen, and saved with the results.
5. The saved model is evaluated on test texts, and its names are tested. By then the run is safe: a run that is killed
   here resumes here.
6. With several seeds, what was measured of their models is averaged too.

A `Pipeline` is what differs between the two: steps 1 to 4 (`train`) and 5 (`measure`).
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from lexical_sae.config.schema import ExperimentConfig
from lexical_sae.data import TextDataset
from lexical_sae.intervene import FREQUENCIES_FILE
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.persistence import save_pretrained
from lexical_sae.runs.folder import EVALUATION, NAMES, RunFolder
from lexical_sae.runs.in_memory import train_model
from lexical_sae.runs.inputs import documents, load_data
from lexical_sae.runs.measuring.evaluating import evaluate_run
from lexical_sae.runs.measuring.name_tests import name_run
from lexical_sae.runs.measuring.paired import write_decisions
from lexical_sae.runs.measuring.scoring import Scores, score
from lexical_sae.runs.planning import within_minutes
from lexical_sae.runs.run import Run
from lexical_sae.runs.seeds import Watchers, run_seeds, with_measurements
from lexical_sae.studies.post_hoc_sae.comparing import RESULTS as SAE_RESULTS
from lexical_sae.training.processes import current
from lexical_sae.training.stopping import EpochScores
from lexical_sae.training.word_table import document_frequencies


@dataclass(frozen=True)
class TrainedRun:
    """A trained model with the data it came from and its scores."""

    model: LexicalSAE
    dataset: TextDataset
    scores: Scores
    """On the test split."""
    validation: EpochScores
    """Of the epoch that was kept."""
    tau_ce: float | None
    """Cross-entropy that the constrained phase had to keep; None where there were no circuit objectives."""
    multiplier: float
    """lambda at the end: how much the cross-entropy counted by then."""
    seed: int
    seconds: float
    """Of all its parts, if it was interrupted."""

    def as_dict(self) -> dict[str, Any]:
        """The figures, as plain data."""
        figures = {"seed": self.seed, "seconds": round(self.seconds, 1)}
        constraint = {"tau_ce": self.tau_ce, "lambda": self.multiplier}
        return {**figures, **constraint, "test": self.scores.as_dict(), "validation": asdict(self.validation)}


@dataclass(frozen=True)
class Pipeline:
    """What a kind of model adds to the run of an experiment."""

    train: Callable[[Run, RunFolder, Watchers], dict[str, Any]]
    """Trains one seed, leaves the model in the folder, and returns the figures, those of the test split as `test`."""
    measure: Callable[[Run, Watchers], None]
    """Measures one seed's saved model."""
    load: Callable[[Run], object]
    """Reads a run's rows; refuses those that changed since it was trained."""
    figures: tuple[str, ...]
    """Figures of the test split that are averaged over seeds, as far as they are there, beside the output kind's."""
    follow: Callable[[Run, Watchers], object]
    """Trains one seed along with the process that calls `train`, and leaves nothing."""


def run_experiment(
    config: ExperimentConfig, *, resume: bool = False, device: str = "auto", watchers: Watchers = Watchers()
) -> dict[str, Any]:
    """Train with every seed of the settings; what `results.json` of `output_dir` then holds (`train_run`)."""
    return train_run(Run.of(config, device), resume=resume, watchers=watchers).results


def train_run(
    run: Run, *, resume: bool = False, watchers: Watchers = Watchers(), pipeline: Pipeline | None = None
) -> Run:
    """Train with every seed of a run's settings, and measure each seed's model unless `after_training` is off.

    Args:
        run: The run of an experiment (`Run.of`); nothing of it needs to be there.
        resume: Whether an interrupted run is resumed; what is finished is not done again.
        watchers: Get progress and notes, and say when to stop.
        pipeline: How its kind of model is trained and measured; by default that of classifiers.

    Of several processes (`processes.joined`), the first does all this, and the others train along.

    Returns:
        The same run, with the rows it was trained on and the saved model if it was measured.
    """
    kind, processes = pipeline or CLASSIFIER, current()
    if not processes.is_first:
        while (seed := processes.from_first()) is not None:
            kind.follow(next(one for one in run.seeds if one.seed == seed), watchers)
        return run

    def train_seed(one: Run, folder: RunFolder) -> dict[str, Any]:
        # Not on data that changed since the first seed: a mean over both would be of neither.
        if finished := next((other for other in run.seeds if other.is_finished), None):
            kind.load(finished)
        processes.from_first(one.seed)
        return kind.train(one, folder, watchers)

    run_seeds(run, train_seed, kind.figures, resume=resume, watchers=watchers)
    processes.from_first(None)  # the others are done
    if run.config.evaluation.after_training:
        for one in run.seeds:
            kind.measure(one, watchers)
            if one is not run.first:
                one.release()
    with_measurements(run)
    return run


def ensure_trained(run: Run, *, resume: bool = False, watchers: Watchers = Watchers()) -> Run:
    """The same run, trained now if there is no model yet; a model of other settings or rows is refused."""
    if run.first.has_model:
        run.require_made_by(run.config)
    # Before anything long: data that cannot be had should not cost a training run.
    _ = run.data
    if not run.first.has_model:
        watchers.on_note(f"there is no model in {run.model_folder} yet; it is trained first")
        train_run(run, resume=resume, watchers=watchers)
    return run


def _train_classifier(run: Run, folder: RunFolder, watchers: Watchers) -> dict[str, Any]:
    done = setup_and_train(run.config, run.device, watchers, seed=run.seed, folder=folder, dataset=run.data)
    save_pretrained(done.model, folder.model, attached=_frequencies(done.model, done.dataset))
    write_decisions(folder.path, done.dataset.test, done.scores)
    # Those of an earlier model in this folder.
    for name in (EVALUATION, NAMES, SAE_RESULTS):
        (folder.path / name).unlink(missing_ok=True)
    return done.as_dict()


def _measure_classifier(run: Run, watchers: Watchers) -> None:
    evaluate_run(run, watchers)
    name_run(run, watchers)


def _follow_classifier(run: Run, watchers: Watchers) -> None:
    train_model(run.config, run.data, seed=run.seed, device=run.device, watchers=watchers)


CLASSIFIER = Pipeline(
    _train_classifier,
    _measure_classifier,
    lambda run: run.data,
    ("accuracy", "active_words", "identity_error"),
    _follow_classifier,
)


def _frequencies(model: LexicalSAE, dataset: TextDataset) -> dict[str, str]:
    """What a model with literal words keeps of its training texts: in how many of them each word stands."""
    if model.literal is None:
        return {}
    counts = document_frequencies(model, documents(model, dataset.train).texts)
    return {FREQUENCIES_FILE: json.dumps(counts, ensure_ascii=False, indent=0) + "\n"}


def setup_and_train(
    config: ExperimentConfig,
    device: str = "auto",
    watchers: Watchers = Watchers(),
    *,
    seed: int | None = None,
    folder: RunFolder | None = None,
    dataset: TextDataset | None = None,
) -> TrainedRun:
    """Build a model, train it, and score it on the test split.

    Args:
        config: The settings.
        device: auto, cpu, cuda or mps.
        watchers: Get progress and notes, and say when to stop.
        seed: One of the settings' seeds; by default the first.
        folder: Gets history and checkpoints; from a checkpoint that it holds, the run is resumed. Without a folder
            nothing is written.
        dataset: The rows; by default those that the settings name.
    """
    started = time.monotonic()
    seed = config.evaluation.seeds[0] if seed is None else seed
    dataset = load_data(config, seed) if dataset is None else dataset
    for note in dataset.notes:
        watchers.on_note(note)
    # The rows that are learned from are those whose words are counted (`_frequencies`).
    config, dataset = within_minutes(config, dataset, seed=seed, device=device, folder=folder, watchers=watchers)
    model, fitted = train_model(config, dataset, seed=seed, device=device, watchers=watchers, folder=folder)
    dataset = replace(dataset, train=fitted.joined or dataset.train)
    scores = score(model, dataset.test, watchers.on_step)
    seconds = folder.seconds if folder else time.monotonic() - started
    return TrainedRun(model, dataset, scores, fitted.best, fitted.tau_ce, fitted.multiplier, seed, seconds)
