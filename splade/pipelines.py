"""From an experiment's settings to trained, measured models, one per seed.

1. The data and the model are made from the settings and the seed.
2. The loop trains; history and checkpoints go to the run's folder.
3. The best weights are scored on the test split, which nothing before has seen, and saved with the results.
"""

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import yaml

from splade.config.schema import ExperimentConfig
from splade.data import TextDataset, TextSplit, load_text_dataset
from splade.data.batches import length_buckets, tokenise
from splade.device import resolve_device, set_seed
from splade.evaluation.intervals import paired_bootstrap
from splade.evaluation.names import measure_names, strongest_words
from splade.evaluation.names_bag import BagOfWords
from splade.inference.reading import read_batch
from splade.mechanistic.attribution import code_identity_error
from splade.models.lexical_sae import CLASSIFY, LexicalSAE
from splade.models.persistence import from_pretrained, save_pretrained
from splade.progress import OnStep, Step, silent
from splade.runs import Watchers, fit, run_seeds
from splade.training.baselines import dense_twin, tfidf_baseline
from splade.training.fine_tuning import DENSE_RATES
from splade.training.run_folder import CONFIG, MODEL, RunFolder, write_json
from splade.training.stopping import EpochScores
from splade.training.tasks import Documents


@dataclass(frozen=True)
class Scores:
    """How a model does on texts it was not trained on."""

    accuracy: float
    majority: float
    """Accuracy of always naming the most frequent label."""
    active_words: float
    """Mean number of active words per text."""
    identity_error: float
    """Worst relative gap between a logit and its decomposition."""
    texts: int
    texts_cut: int
    """Texts longer than the model reads."""
    is_correct: tuple[bool, ...]
    """Of each text, in order, so that differences can be paired."""

    def as_dict(self) -> dict[str, Any]:
        """The figures, as plain data."""
        return {name: value for name, value in asdict(self).items() if name != "is_correct"}


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
    seed: int
    seconds: float
    """Of all its parts, if it was interrupted."""

    def as_dict(self) -> dict[str, Any]:
        """The figures, as plain data."""
        figures = {"seed": self.seed, "seconds": round(self.seconds, 1), "tau_ce": self.tau_ce}
        return {**figures, "test": self.scores.as_dict(), "validation": asdict(self.validation)}


def run_experiment(
    config: ExperimentConfig, *, resume: bool = False, device: str = "auto", watchers: Watchers = Watchers()
) -> dict[str, Any]:
    """Train with every seed of the settings and return what `results.json` of `output_dir` then says (`run_seeds`)."""

    def run_seed(seed: int, folder: RunFolder) -> dict[str, Any]:
        run = setup_and_train(config, device, watchers, seed=seed, folder=folder)
        save_pretrained(run.model, folder.model)
        return run.as_dict()

    figures = ("accuracy", "active_words", "identity_error")
    return run_seeds(config, run_seed, figures, resume=resume, watchers=watchers)


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
    model = LexicalSAE.from_backbone(config.model, {CLASSIFY: dataset.label_names}).to(resolve_device(device))
    train, validation = (documents(model, split) for split in (dataset.train, dataset.validation))
    best, tau_ce = fit(model, train, validation, config.training, seed, folder, watchers)
    scores = score(model, dataset.test, watchers.on_step)
    seconds = folder.seconds if folder else time.monotonic() - started
    return TrainedRun(model, dataset, scores, best, tau_ce, seed, seconds)


def run_baselines(
    config: ExperimentConfig,
    device: str = "auto",
    *,
    dense_rates: Sequence[float] = DENSE_RATES,
    on_step: OnStep = silent,
) -> dict[str, Any]:
    """Yardsticks on the experiment's rows, written to `baselines.json`; compared with its model where there is one.

    Without `dense_rates` no dense twin is trained.
    """
    seed = config.evaluation.seeds[0]
    dataset = load_data(config, seed)
    epochs = config.training.planned_epochs(len(dataset.train))
    found = [tfidf_baseline(dataset)]
    if dense_rates:
        found.append(
            dense_twin(
                dataset,
                config.model.name,
                epochs=epochs,
                batch_size=config.training.effective_batch,
                max_length=config.model.max_length,
                rates=dense_rates,
                seed=seed,
                device=device,
                on_step=on_step,
            )
        )
    results = {
        "test_texts": len(dataset.test),
        "test_digest": _digest(dataset.test),
        "baselines": {b.name: asdict(b) for b in found},
    }
    if model_folder(config).is_dir():
        results |= _comparison(config, dataset.test, results["baselines"], device, on_step)
    write_json(_baselines_file(config), results)
    return results


def compare_again(config: ExperimentConfig, device: str = "auto", *, on_step: OnStep = silent) -> dict[str, Any]:
    """The experiment's model against the yardsticks that `baselines.json` holds, which is written anew.

    For a model that is new where the test texts are not: no yardstick is trained.
    """
    path = _baselines_file(config)
    if not path.is_file():
        raise ValueError(f"there is no {path} to compare with; measure the yardsticks first")
    results = json.loads(path.read_text(encoding="utf-8"))
    test = load_data(config, config.evaluation.seeds[0]).test
    if results.get("test_digest") != _digest(test):
        raise ValueError(f"{path} was measured on other test texts; measure the yardsticks anew")
    results |= _comparison(config, test, results["baselines"], device, on_step)
    write_json(path, results)
    return results


def _comparison(
    config: ExperimentConfig, test: TextSplit, baselines: dict[str, Any], device: str, on_step: OnStep
) -> dict[str, Any]:
    """Accuracy of the experiment's model, and how much it is above that of each yardstick."""
    own = model_folder(config)
    model = from_pretrained(own)
    require_same_experiment(config, own.parent)
    ours = score(model.to(resolve_device(device)), test, on_step)
    differences = {name: paired_bootstrap(ours.is_correct, theirs["is_correct"]) for name, theirs in baselines.items()}
    return {
        "model": {"folder": str(own), "accuracy": ours.accuracy},
        "difference": {name: asdict(difference) for name, difference in differences.items()},
    }


def _baselines_file(config: ExperimentConfig) -> Path:
    return Path(config.output_dir) / "baselines.json"


def _digest(split: TextSplit) -> str:
    """A hash of the texts and labels, in order."""
    return hashlib.sha256(json.dumps([list(split.texts), list(split.labels)]).encode()).hexdigest()


def run_names(
    config: ExperimentConfig, *, texts: int = 200, words: int = 20, on_step: OnStep = silent
) -> dict[str, Any]:
    """Name scores of the experiment's model beside those of a bag of words, written to `names.json`."""
    seed, place = config.evaluation.seeds[0], Path(config.output_dir)
    dataset = load_data(config, seed)
    own = model_folder(config)
    model = from_pretrained(own)
    require_same_experiment(config, own.parent)
    bag = BagOfWords(dataset.train.texts, dataset.train.labels)
    corpus = dataset.train.texts
    strongest = strongest_words(model, dataset.test.texts[:2000], dataset.test.labels[:2000], words, on_step)
    results = {
        "model": measure_names(model, dataset.test.texts, corpus, seed, texts, on_step).as_dict(),
        "bag of words": measure_names(bag, dataset.test.texts, corpus, seed, texts, on_step).as_dict(),
        "strongest_words": {dataset.label_names[c]: [asdict(w) for w in ws] for c, ws in strongest.items()},
    }
    write_json(place / "names.json", results)
    return results


def model_folder(config: ExperimentConfig) -> Path:
    """Where the run of the first seed left its model."""
    place, seed = Path(config.output_dir), config.evaluation.seeds[0]
    return next((p for p in (place / MODEL, place / f"seed-{seed}" / MODEL) if p.is_dir()), place / MODEL)


def require_same_experiment(config: ExperimentConfig, folder: Path) -> None:
    """Refuse to measure a model on rows that it may have learned from."""
    saved = yaml.safe_load((folder / CONFIG).read_text(encoding="utf-8"))
    given = json.loads(config.model_dump_json())
    odd = [part for part in ("data", "model", "evaluation") if saved.get(part) != given[part]]
    if odd:
        raise ValueError(
            f"the run in {folder} was made with other settings ({', '.join(odd)}), so its test texts may differ; "
            "give the experiment that made it"
        )


def load_data(config: ExperimentConfig, seed: int) -> TextDataset:
    """The data set that the settings name."""
    data = config.data
    return load_text_dataset(
        data.dataset_name,
        path=data.path,
        train_samples=data.train_samples,
        test_samples=data.test_samples,
        seed=seed,
        text_column=data.text_column,
        label_column=data.label_column,
        skip_bad_rows=data.skip_bad_rows,
    )


def documents(model: LexicalSAE, split: TextSplit) -> Documents:
    """A split as the training loop wants it."""
    return Documents(
        tokenise(model.tokenizer, split.texts, model.max_length), torch.tensor(split.labels, dtype=torch.long)
    )


@torch.no_grad()
def score(model: LexicalSAE, split: TextSplit, on_step: OnStep = silent, batch_size: int = 64) -> Scores:
    """Accuracy, active words and identity error over a split."""
    model.eval()
    texts = tokenise(model.tokenizer, split.texts, model.max_length)
    gold = torch.tensor(split.labels)
    is_correct = torch.zeros(len(split), dtype=torch.bool)
    active, worst, done = 0, 0.0, 0
    for rows in length_buckets(texts, batch_size):
        state = read_batch(model, texts.batch(rows))
        is_correct[rows] = state.logits.argmax(-1).cpu() == gold[rows]
        active += len(state.code.values)
        worst = max(worst, float(code_identity_error(state).max()))
        done += len(rows)
        on_step(Step("testing", done, len(texts)))
    count = len(split)
    return Scores(
        accuracy=int(is_correct.sum()) / count,
        majority=int(gold.bincount().max()) / count,
        active_words=active / count,
        identity_error=worst,
        texts=count,
        texts_cut=texts.num_cut,
        is_correct=tuple(is_correct.tolist()),
    )
