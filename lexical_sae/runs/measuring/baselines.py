"""The baselines of an experiment on its own rows, in `baselines.json`: TF-IDF, the frozen encoder, the dense baseline.

With several seeds there are several of each, on the rows that the seed draws, and each is paired with the model of its
seed: one run of either may be lucky. The first dense baseline chooses the learning rate, the others take it over.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from lexical_sae.config.schema import ExperimentConfig
from lexical_sae.data import TextDataset
from lexical_sae.outputs import CLASSES
from lexical_sae.runs.folder import BASELINES, DECISIONS, write_json
from lexical_sae.runs.inputs import digest, load_data, output_of, text_digests
from lexical_sae.runs.measuring.paired import Decisions, paired_difference
from lexical_sae.runs.measuring.scoring import score
from lexical_sae.runs.measuring.target_baselines import target_baselines
from lexical_sae.runs.run import Run
from lexical_sae.runs.seeds import Watchers, require_one_experiment
from lexical_sae.training.baselines.dense import dense_baseline
from lexical_sae.training.baselines.fine_tuning import DENSE_RATES, DenseTraining, rate_name
from lexical_sae.training.baselines.frozen import FrozenEncoder, frozen_baseline
from lexical_sae.training.baselines.scores import BaselineScores
from lexical_sae.training.baselines.tfidf import tfidf_baseline
from lexical_sae.utils.cost import WorkCost, with_cost
from lexical_sae.utils.errors import SavedFileError
from lexical_sae.utils.progress import OnStep, silent

DENSE = "dense baseline"
CHEAP = ("TF-IDF", "frozen encoder")
"""Names of the baselines that take seconds."""


@dataclass(frozen=True)
class BaselineRun:
    """What a baseline came to with one seed."""

    seed: int
    test_digest: str
    scores: BaselineScores
    cost: WorkCost

    @classmethod
    def of(cls, seed: int, dataset: TextDataset, measure: Callable[[], BaselineScores]) -> "BaselineRun":
        return cls(seed, digest(dataset.test), *with_cost(measure))


def run_baselines(
    config: ExperimentConfig,
    device: str = "auto",
    *,
    dense_rates: Sequence[float] = DENSE_RATES,
    on_step: OnStep = silent,
    run: Run | None = None,
) -> dict[str, Any]:
    """Baselines on the experiment's rows, written to `baselines.json`; compared with its models where there are any.

    Without `dense_rates` no dense baseline is trained, and one that was measured before on the same test texts stays.
    What is finished is written after every seed. Models that were trained with other settings are refused before
    anything is measured. A `run` of the experiment that is open already has its rows and its model.
    """
    require_one_experiment(config)
    if output_of(config) != CLASSES.kind:
        return target_baselines(run or Run.of(config, device), on_step=on_step)
    models, rates, kept = (
        _models(config, run or Run.of(config, device)),
        dense_rates,
        {} if dense_rates else _earlier_dense(config),
    )
    cheap: list[tuple[BaselineRun, ...]] = []
    dense_runs: list[BaselineRun] = []
    results: dict[str, Any] = {}
    for seed in config.evaluation.seeds:
        dataset = _rows(config, seed, run)
        cheap.append(cheap_baselines(config, dataset, seed, device, on_step))
        if rates:
            dense_runs.append(
                BaselineRun.of(seed, dataset, partial(_dense, config, dataset, rates, seed, device, on_step))
            )
            rates = [rate for rate in rates if rate_name(rate) == dense_runs[0].scores.setting]
        results = results or {
            "test_texts": len(dataset.test),
            "test_digest": digest(dataset.test),
            "train_digest": digest(dataset.train),
        }
        results["baselines"] = {
            runs[0].scores.name: _over_seeds(runs) for runs in (*zip(*cheap, strict=True), dense_runs) if runs
        }
        results["baselines"] |= kept.get(results["test_digest"], {})
        write_json(_file(config), results)
    if models:
        results |= _comparison(models, results["baselines"], on_step)
        write_json(_file(config), results)
    return results


def baselines_beside(run: Run, *, on_step: OnStep = silent) -> dict[str, Any]:
    """The cheap baselines beside the models of a run that was just trained, as `run_baselines` writes them.

    Those that the folder holds already for the same rows and as many seeds, as after `--resume`, stay.
    """
    config = run.config.model_copy(update={"output_dir": str(run.folder)})
    if output_of(config) != CLASSES.kind:
        return target_baselines(run, on_step=on_step)
    try:
        saved = read_baselines(_file(config))
    except (OSError, ValueError):
        saved = {"baselines": {}}
    measured = [saved["baselines"].get(name, {}).get("runs", ()) for name in CHEAP]
    rows = _rows(config, config.evaluation.seeds[0], run)
    is_same = all(
        saved.get(key) == digest(of) for key, of in (("train_digest", rows.train), ("test_digest", rows.test))
    )
    if is_same and all(len(runs) == len(config.evaluation.seeds) for runs in measured):
        return compare_again(config, run.device, on_step=on_step, run=run)
    return run_baselines(config, run.device, dense_rates=(), on_step=on_step, run=run)


def cheap_baselines(
    config: ExperimentConfig, dataset: TextDataset, seed: int, device: str = "auto", on_step: OnStep = silent
) -> tuple[BaselineRun, ...]:
    """What takes seconds to minutes on the rows of a seed, with its cost: TF-IDF, and the encoder as it was published.

    Both end in a logistic regression.
    """
    settings = config.model
    encoder = FrozenEncoder(settings.name, settings.max_length, settings.windows_read, device)
    frozen = partial(frozen_baseline, dataset, encoder, on_step)
    return tuple(
        BaselineRun.of(seed, dataset, measure) for measure in (partial(tfidf_baseline, dataset, on_step), frozen)
    )


def _dense(
    config: ExperimentConfig, dataset: TextDataset, rates: Sequence[float], seed: int, device: str, on_step: OnStep
) -> BaselineScores:
    asked = dense_training(config, len(dataset.train), rates, seed, device, on_step)
    return dense_baseline(dataset, config.model.name, asked)


def dense_training(
    config: ExperimentConfig, rows: int, rates: Sequence[float], seed: int, device: str, on_step: OnStep
) -> DenseTraining:
    """How the dense baseline of an experiment with so many training rows is trained."""
    return DenseTraining(
        epochs=config.training.planned_epochs(rows),
        batch_size=config.training.effective_batch,
        max_length=config.model.max_length,
        rates=rates,
        seed=seed,
        device=device,
        dtype=config.training.dtype,
        on_step=on_step,
    )


def _earlier_dense(config: ExperimentConfig) -> dict[str, dict[str, Any]]:
    """The dense baseline that `baselines.json` holds already, by the digest of the test texts; training is slow."""
    try:
        saved = read_baselines(_file(config))
    except (OSError, ValueError):
        return {}
    return {saved["test_digest"]: {DENSE: saved["baselines"][DENSE]}} if DENSE in saved["baselines"] else {}


def _over_seeds(runs: Sequence[BaselineRun]) -> dict[str, Any]:
    """A baseline as plain data: its mean accuracy, each run, and the cost of all settings and seeds together."""
    first = runs[0].scores
    of_seeds = [
        {
            "seed": run.seed,
            "accuracy": run.scores.accuracy,
            "test_digest": run.test_digest,
            "is_correct": list(run.scores.is_correct),
        }
        for run in runs
    ]
    return {
        "name": first.name,
        "accuracy": sum(run.scores.accuracy for run in runs) / len(runs),
        "macro_f1": _mean([run.scores.macro_f1 for run in runs]),
        "setting": first.setting,
        "validation": first.validation,
        "runs": of_seeds,
        "seconds": round(sum(run.cost["seconds"] for run in runs), 1),
        "peak_megabytes": max((peak for run in runs if (peak := run.cost["peak_megabytes"]) is not None), default=None),
    }


def _mean(figures: Sequence[float | None]) -> float | None:
    """None where a run does not know it."""
    known = [figure for figure in figures if figure is not None]
    return sum(known) / len(known) if len(known) == len(figures) else None


def compare_again(
    config: ExperimentConfig, device: str = "auto", *, on_step: OnStep = silent, run: Run | None = None
) -> dict[str, Any]:
    """The experiment's model against the baselines that `baselines.json` holds, which is rewritten.

    For a model that is new where the test texts are not: no baseline is trained.
    """
    require_one_experiment(config)
    if output_of(config) != CLASSES.kind:
        return target_baselines(run or Run.of(config, device), on_step=on_step)
    path = _file(config)
    if not path.is_file():
        raise SavedFileError(f"there is no {path} to compare with; measure the baselines first")
    results = read_baselines(path)
    if results.get("test_digest") != digest(_rows(config, config.evaluation.seeds[0], run).test):
        raise SavedFileError(f"{path} was measured on other test texts; measure the baselines again")
    # Where there is no model, reading the first reports what is missing.
    run = run or Run.of(config, device)
    models = _models(config, run) or {config.evaluation.seeds[0]: run}
    results |= _comparison(models, results["baselines"], on_step)
    write_json(path, results)
    return results


def measured_baselines(
    config: ExperimentConfig, device: str, watchers: Watchers, *, again: bool = False
) -> dict[str, Any]:
    """The folder's `baselines.json`; measured first if a seed has no dense baseline in it, or with `again`."""
    path = _file(config)
    found = read_baselines(path) if path.is_file() and not again else None
    dense_runs = baseline_decisions(found["baselines"][DENSE]) if found and DENSE in found["baselines"] else {}
    if found is None or not dense_runs.keys() >= set(config.evaluation.seeds):
        watchers.on_note("the dense baseline and TF-IDF")
        run_baselines(config, device, on_step=watchers.until_interrupted("training the dense baseline"))
        return read_baselines(path)
    return found


def read_baselines(path: Path) -> dict[str, Any]:
    """What `run_baselines` wrote; anything else is refused."""
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        _ = int(saved["test_texts"])
        for scores in saved["baselines"].values():
            if not baseline_decisions(scores):
                raise SavedFileError("a baseline without a run")
            _ = float(scores["accuracy"])
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise SavedFileError(
            f"{path} is not what this version of `lexical-sae baselines` writes; delete it or measure again"
        ) from error
    return saved


def baseline_decisions(scores: Mapping[str, Any]) -> dict[int, Decisions]:
    """Which test texts a baseline got right, by seed."""
    return {run["seed"]: Decisions(run["test_digest"], tuple(run["is_correct"])) for run in scores["runs"]}


def pairs_by_seed(
    models: Mapping[int, Decisions], baseline: Mapping[int, Decisions]
) -> dict[int, tuple[Decisions, Decisions]]:
    """Models of an experiment, each with the baseline of its seed, or the first where there is none.

    Models that were tested on other texts than their baseline are left out, as long as there are others.
    """
    first = next(iter(baseline.values()))
    pairs = {seed: (model, baseline.get(seed, first)) for seed, model in models.items()}
    same = {seed: (model, other) for seed, (model, other) in pairs.items() if model.digest == other.digest}
    return same or dict(list(pairs.items())[:1])


def _rows(config: ExperimentConfig, seed: int, run: Run | None) -> TextDataset:
    """The rows that a seed draws; those of an open run of one seed are there already."""
    return run.data if run is not None and run.seeds == (run,) else load_data(config, seed)


def _models(config: ExperimentConfig, run: Run) -> dict[int, Run]:
    """The experiment's runs with a model, by seed; one that was trained with other settings is refused."""
    there = {one.seed: one for one in run.seeds if one.has_model} or ({run.seed: run} if run.has_model else {})
    for one in there.values():
        one.require_made_by(config)
    return there


def _comparison(runs: Mapping[int, Run], baselines: dict[str, Any], on_step: OnStep) -> dict[str, Any]:
    """Accuracy of the experiment's models, and how much it is above that of each baseline."""
    ours = {seed: _decisions(run, on_step) for seed, run in runs.items()}
    accuracies = [sum(one.is_correct) / len(one.is_correct) for one in ours.values()]
    differences = {}
    for name, scores in baselines.items():
        pairs = pairs_by_seed(ours, baseline_decisions(scores))
        difference = paired_difference(*zip(*pairs.values(), strict=True))
        differences[name] = {**asdict(difference), "seeds": [*pairs]}
    folder = str(next(iter(runs.values())).model_folder)
    return {
        "model": {"folder": folder, "accuracy": sum(accuracies) / len(accuracies), "seeds": [*ours]},
        "difference": differences,
    }


def _decisions(run: Run, on_step: OnStep) -> Decisions:
    """Which of its test texts the model of a seed gets right."""
    model, dataset = run.model_and_data()
    if (run.folder / DECISIONS).is_file():
        # Of the test texts that the data still holds: `run.data` refuses others.
        found = run.decisions
    else:
        is_correct = score(model, dataset.test, on_step).is_correct
        found = Decisions(digest(dataset.test), is_correct, tuple(text_digests(dataset.test)))
    if run.seeds != (run,):
        # One of several: only one model is held at a time.
        run.release()
    return found


def _file(config: ExperimentConfig) -> Path:
    return Path(config.output_dir) / BASELINES
