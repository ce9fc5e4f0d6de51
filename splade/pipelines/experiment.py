"""From an experiment's settings to trained, measured models, one per seed.

1. The data and the model are made from the settings and the seed.
2. The loop trains; history and checkpoints go to the run's folder.
3. Validation texts tell when the model should warn or abstain (`calibrating`).
4. The best weights are scored on the test split, which nothing before has seen, and saved with the results.
5. The saved model is evaluated on test texts, and its names are tried. By then the run is safe: a run that is killed
   here resumes here.
6. With several seeds, what was measured of their models is averaged too.
"""

import json
import time
from dataclasses import asdict, dataclass
from typing import Any

from splade.config.schema import ExperimentConfig
from splade.data import TextDataset
from splade.device import resolve_device, set_seed
from splade.intervene import FREQUENCIES_FILE
from splade.models.lexical_sae import CLASSIFY, LexicalSAE
from splade.models.persistence import save_pretrained
from splade.pipelines.calibrating import calibrate
from splade.pipelines.evaluating import evaluate_runs
from splade.pipelines.inputs import documents, load_data, training_documents
from splade.pipelines.naming import name_runs
from splade.pipelines.over_seeds import with_measurements
from splade.pipelines.sae_comparison import RESULTS as SAE_RESULTS
from splade.pipelines.scoring import Scores, require_same_rows, score, write_decisions
from splade.runs import Watchers, fit, run_seeds, seed_folders
from splade.training.run_folder import EVALUATION, NAMES, RESULTS, RunFolder
from splade.training.stopping import EpochScores
from splade.training.word_table import document_frequencies


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
    """Cross-entropy that the constrained phase had to keep; None when circuits were not asked for."""
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


def run_experiment(
    config: ExperimentConfig, *, resume: bool = False, device: str = "auto", watchers: Watchers = Watchers()
) -> dict[str, Any]:
    """Train with every seed of the settings and return what `results.json` of `output_dir` then says (`run_seeds`).

    Then every seed's model is evaluated (`evaluate_runs`) and its names are tried (`name_runs`), unless
    `evaluation.after_training` is off.
    """

    def run_seed(seed: int, folder: RunFolder) -> dict[str, Any]:
        _require_data_of_finished(config)
        run = setup_and_train(config, device, watchers, seed=seed, folder=folder)
        save_pretrained(run.model, folder.model, attached=_frequencies(run.model, run.dataset))
        write_decisions(folder.path, run.dataset.test, run.scores)
        # Those of before would be of a model which is gone.
        for name in (EVALUATION, NAMES, SAE_RESULTS):
            (folder.path / name).unlink(missing_ok=True)
        return run.as_dict()

    figures = ("accuracy", "active_words", "identity_error")
    results = run_seeds(config, run_seed, figures, resume=resume, watchers=watchers)
    if config.evaluation.after_training:
        evaluate_runs(config, device, watchers)
        name_runs(config, device, watchers)
    return with_measurements(config, results)


def _frequencies(model: LexicalSAE, dataset: TextDataset) -> dict[str, str]:
    """What a model with literal words keeps of its training texts: in how many of them each word stands."""
    if model.literal is None:
        return {}
    counts = document_frequencies(model, documents(model, dataset.train).texts)
    return {FREQUENCIES_FILE: json.dumps(counts, ensure_ascii=False, indent=0) + "\n"}


def _require_data_of_finished(config: ExperimentConfig) -> None:
    """Refuse to train another seed on data that changed since the first: a mean over both would be of neither."""
    finished = ((seed, folder) for seed, folder in seed_folders(config).items() if (folder / RESULTS).is_file())
    if found := next(finished, None):
        seed, folder = found
        require_same_rows(folder, load_data(config, seed))


def setup_and_train(
    config: ExperimentConfig,
    device: str = "auto",
    watchers: Watchers = Watchers(),
    *,
    seed: int | None = None,
    folder: RunFolder | None = None,
) -> TrainedRun:
    """Load the data, build the model, train it, and score it on the test split.

    Without a folder nothing is written; in one there will be history and checkpoints, and if it holds a checkpoint the
    run goes on from there.
    """
    started = time.monotonic()
    seed = config.evaluation.seeds[0] if seed is None else seed
    dataset = load_data(config, seed)
    for note in dataset.notes:
        watchers.on_note(note)
    set_seed(seed)
    labels = {CLASSIFY: dataset.label_names}
    model = LexicalSAE.from_backbone(config.model, labels, dataset.train.texts).to(resolve_device(device))
    train = training_documents(model, dataset, config.training.negations, seed)
    validation = documents(model, dataset.validation)
    fitted = fit(model, train, validation, config.training, seed, folder, watchers)
    model.calibration = calibrate(model, dataset, on_step=watchers.on_step)
    scores = score(model, dataset.test, watchers.on_step)
    seconds = folder.seconds if folder else time.monotonic() - started
    return TrainedRun(model, dataset, scores, *fitted, seed, seconds)
