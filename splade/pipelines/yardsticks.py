"""The yardsticks of an experiment on its own rows, in `baselines.json`: the dense twin, and TF-IDF as the floor.

With several seeds there are several of each, on the rows that the seed draws, and each is paired with the model of its
seed: one run of either may be lucky. The first twin chooses the learning rate, the others take it over.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from splade.config.schema import ExperimentConfig
from splade.data import TextDataset
from splade.device import resolve_device
from splade.evaluation.arena.cost import WorkCost, with_cost
from splade.models.persistence import from_pretrained
from splade.pipelines.inputs import (
    digest,
    load_data,
    model_folder,
    require_same_experiment,
    require_same_labels,
    text_digests,
)
from splade.pipelines.pairing import paired_difference
from splade.pipelines.scoring import Decisions, require_same_rows, score
from splade.progress import OnStep, silent
from splade.runs import Watchers, require_one_experiment
from splade.training.baselines import BaselineScores, dense_twin, tfidf_baseline
from splade.training.fine_tuning import DENSE_RATES, rate_name
from splade.training.run_folder import BASELINES, write_json

DENSE = "dense twin"


@dataclass(frozen=True)
class _Run:
    """What a yardstick came to with one seed."""

    seed: int
    test_digest: str
    scores: BaselineScores
    cost: WorkCost

    @classmethod
    def of(cls, seed: int, dataset: TextDataset, measure: Callable[[], BaselineScores]) -> "_Run":
        return cls(seed, digest(dataset.test), *with_cost(measure))


def run_baselines(
    config: ExperimentConfig,
    device: str = "auto",
    *,
    dense_rates: Sequence[float] = DENSE_RATES,
    on_step: OnStep = silent,
) -> dict[str, Any]:
    """Yardsticks on the experiment's rows, written to `baselines.json`; compared with its models where there are any.

    Without `dense_rates` no dense twin is trained, and one that was measured before on the same test texts stays. What
    is finished is written after every seed. Models that were trained with other settings are refused before anything
    is measured.
    """
    require_one_experiment(config)
    models, rates, kept = _models(config), dense_rates, {} if dense_rates else _twin_of_before(config)
    floors: list[_Run] = []
    twins: list[_Run] = []
    results: dict[str, Any] = {}
    for seed in config.evaluation.seeds:
        dataset = load_data(config, seed)
        floors.append(_Run.of(seed, dataset, partial(tfidf_baseline, dataset, on_step)))
        if rates:
            twins.append(_Run.of(seed, dataset, partial(_twin, config, dataset, rates, seed, device, on_step)))
            rates = [rate for rate in rates if rate_name(rate) == twins[0].scores.setting]
        results = results or {"test_texts": len(dataset.test), "test_digest": digest(dataset.test)}
        results["baselines"] = {runs[0].scores.name: _over_seeds(runs) for runs in (floors, twins) if runs}
        results["baselines"] |= kept.get(results["test_digest"], {})
        write_json(_file(config), results)
    if models:
        results |= _comparison(config, models, results["baselines"], device, on_step)
        write_json(_file(config), results)
    return results


def _twin(
    config: ExperimentConfig, dataset: TextDataset, rates: Sequence[float], seed: int, device: str, on_step: OnStep
) -> BaselineScores:
    return dense_twin(
        dataset,
        config.model.name,
        epochs=config.training.planned_epochs(len(dataset.train)),
        batch_size=config.training.effective_batch,
        max_length=config.model.max_length,
        rates=rates,
        seed=seed,
        device=device,
        on_step=on_step,
    )


def _twin_of_before(config: ExperimentConfig) -> dict[str, dict[str, Any]]:
    """The dense twin that `baselines.json` holds already, by the digest of the test texts; training it takes long."""
    try:
        saved = read_baselines(_file(config))
    except (OSError, ValueError):
        return {}
    return {saved["test_digest"]: {DENSE: saved["baselines"][DENSE]}} if DENSE in saved["baselines"] else {}


def _over_seeds(runs: Sequence[_Run]) -> dict[str, Any]:
    """A yardstick as plain data: its mean accuracy, each run, and the cost of all settings and seeds together."""
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
        "setting": first.setting,
        "validation": first.validation,
        "runs": of_seeds,
        "seconds": round(sum(run.cost["seconds"] for run in runs), 1),
        "peak_megabytes": max((peak for run in runs if (peak := run.cost["peak_megabytes"]) is not None), default=None),
    }


def compare_again(config: ExperimentConfig, device: str = "auto", *, on_step: OnStep = silent) -> dict[str, Any]:
    """The experiment's model against the yardsticks that `baselines.json` holds, which is written anew.

    For a model that is new where the test texts are not: no yardstick is trained.
    """
    require_one_experiment(config)
    path = _file(config)
    if not path.is_file():
        raise ValueError(f"there is no {path} to compare with; measure the yardsticks first")
    results = read_baselines(path)
    if results.get("test_digest") != digest(load_data(config, config.evaluation.seeds[0]).test):
        raise ValueError(f"{path} was measured on other test texts; measure the yardsticks anew")
    # Where there is no model, reading the first says what is missing.
    models = _models(config) or {config.evaluation.seeds[0]: model_folder(config)}
    results |= _comparison(config, models, results["baselines"], device, on_step)
    write_json(path, results)
    return results


def measured_baselines(
    config: ExperimentConfig, device: str, watchers: Watchers, *, anew: bool = False
) -> dict[str, Any]:
    """What `baselines.json` of the folder says; measured first if a seed has no twin in it, or it is to be anew."""
    path = _file(config)
    found = read_baselines(path) if path.is_file() and not anew else None
    twins = yardstick_decisions(found["baselines"][DENSE]) if found and DENSE in found["baselines"] else {}
    if found is None or not twins.keys() >= set(config.evaluation.seeds):
        watchers.on_note("the dense twin and TF-IDF")
        run_baselines(config, device, on_step=watchers.until_interrupted("training the dense twin"))
        return read_baselines(path)
    return found


def read_baselines(path: Path) -> dict[str, Any]:
    """What `run_baselines` wrote; anything else is refused."""
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        _ = int(saved["test_texts"])
        for scores in saved["baselines"].values():
            if not yardstick_decisions(scores):
                raise ValueError("a yardstick without a run")
            _ = float(scores["accuracy"])
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} is not what this version of `lexical-sae baselines` writes; delete it or make it anew"
        ) from error
    return saved


def yardstick_decisions(scores: Mapping[str, Any]) -> dict[int, Decisions]:
    """Which test texts a yardstick got right, by seed."""
    return {run["seed"]: Decisions(run["test_digest"], tuple(run["is_correct"])) for run in scores["runs"]}


def pairs_by_seed(
    models: Mapping[int, Decisions], yardstick: Mapping[int, Decisions]
) -> dict[int, tuple[Decisions, Decisions]]:
    """Models of an experiment, each with the yardstick of its seed, or the first where there is none.

    Models that were tested on other texts than their yardstick are left out, as long as there are others.
    """
    first = next(iter(yardstick.values()))
    pairs = {seed: (model, yardstick.get(seed, first)) for seed, model in models.items()}
    same = {seed: (model, other) for seed, (model, other) in pairs.items() if model.digest == other.digest}
    return same or dict(list(pairs.items())[:1])


def _models(config: ExperimentConfig) -> dict[int, Path]:
    """Folders of the experiment's models, by seed; one that was trained with other settings is refused."""
    folders = {seed: model_folder(config, seed) for seed in config.evaluation.seeds}
    there = {seed: own for seed, own in folders.items() if own.is_dir()}
    for own in there.values():
        require_same_experiment(config, own.parent)
    return there


def _comparison(
    config: ExperimentConfig, models: Mapping[int, Path], baselines: dict[str, Any], device: str, on_step: OnStep
) -> dict[str, Any]:
    """Accuracy of the experiment's models, and how much it is above that of each yardstick."""
    ours = {seed: _decisions(config, seed, own, device, on_step) for seed, own in models.items()}
    accuracies = [sum(one.is_correct) / len(one.is_correct) for one in ours.values()]
    differences = {}
    for name, scores in baselines.items():
        pairs = pairs_by_seed(ours, yardstick_decisions(scores))
        difference = paired_difference(*zip(*pairs.values(), strict=True))
        differences[name] = {**asdict(difference), "seeds": [*pairs]}
    folder = str(next(iter(models.values())))
    return {
        "model": {"folder": folder, "accuracy": sum(accuracies) / len(accuracies), "seeds": [*ours]},
        "difference": differences,
    }


def _decisions(config: ExperimentConfig, seed: int, own: Path, device: str, on_step: OnStep) -> Decisions:
    """Which of its test texts the model of a seed gets right."""
    dataset, model = load_data(config, seed), from_pretrained(own)
    require_same_labels(model, dataset)
    require_same_rows(own.parent, dataset)
    scores = score(model.to(resolve_device(device)), dataset.test, on_step)
    return Decisions(digest(dataset.test), scores.is_correct, tuple(text_digests(dataset.test)))


def _file(config: ExperimentConfig) -> Path:
    return Path(config.output_dir) / BASELINES
