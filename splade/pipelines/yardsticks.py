"""The yardsticks of an experiment on its own rows, in `baselines.json`: the dense twin, and TF-IDF as the floor.

With several seeds there are several twins, as there are several models, and each is paired with the model of its seed:
one run of either may be lucky. The first chooses the learning rate, the others take it over. TF-IDF has no seed.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from splade.config.schema import ExperimentConfig
from splade.data import TextDataset
from splade.device import resolve_device
from splade.evaluation.arena.cost import with_cost
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
from splade.pipelines.scoring import Decisions, score
from splade.progress import OnStep, silent
from splade.runs import Watchers
from splade.training.baselines import BaselineScores, dense_twin, tfidf_baseline
from splade.training.fine_tuning import DENSE_RATES, rate_name
from splade.training.run_folder import BASELINES, write_json

DENSE = "dense twin"
Runs = dict[int, tuple[BaselineScores, str]]
"""Scores of a yardstick by seed, each with the digest of the test texts."""


def run_baselines(
    config: ExperimentConfig,
    device: str = "auto",
    *,
    dense_rates: Sequence[float] = DENSE_RATES,
    on_step: OnStep = silent,
) -> dict[str, Any]:
    """Yardsticks on the experiment's rows, written to `baselines.json`; compared with its models where there are any.

    Without `dense_rates` no dense twin is trained.
    """
    seeds = config.evaluation.seeds
    dataset = load_data(config, seeds[0])
    found = [_timed(lambda: {seeds[0]: (tfidf_baseline(dataset, on_step), digest(dataset.test))})]
    if dense_rates:
        found.append(_timed(lambda: _dense_twins(config, dataset, dense_rates, device, on_step)))
    results = {
        "test_texts": len(dataset.test),
        "test_digest": digest(dataset.test),
        "baselines": {scores["name"]: scores for scores in found},
    }
    if model_folder(config).is_dir():
        results |= _comparison(config, results["baselines"], device, on_step)
    write_json(_file(config), results)
    return results


def _dense_twins(
    config: ExperimentConfig, first: TextDataset, rates: Sequence[float], device: str, on_step: OnStep
) -> Runs:
    """A twin per seed, on the rows that the seed draws; all but the first at the rate that the first chose."""
    found: Runs = {}
    for seed in config.evaluation.seeds:
        dataset = load_data(config, seed) if found else first
        scores = dense_twin(
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
        rates = [rate for rate in rates if rate_name(rate) == scores.setting]
        found[seed] = scores, digest(dataset.test)
    return found


def compare_again(config: ExperimentConfig, device: str = "auto", *, on_step: OnStep = silent) -> dict[str, Any]:
    """The experiment's model against the yardsticks that `baselines.json` holds, which is written anew.

    For a model that is new where the test texts are not: no yardstick is trained.
    """
    path = _file(config)
    if not path.is_file():
        raise ValueError(f"there is no {path} to compare with; measure the yardsticks first")
    results = read_baselines(path)
    if results.get("test_digest") != digest(load_data(config, config.evaluation.seeds[0]).test):
        raise ValueError(f"{path} was measured on other test texts; measure the yardsticks anew")
    results |= _comparison(config, results["baselines"], device, on_step)
    write_json(path, results)
    return results


def measured_baselines(
    config: ExperimentConfig, device: str, watchers: Watchers, *, anew: bool = False
) -> dict[str, Any]:
    """What `baselines.json` of the folder says; measured first if the dense twin is not in it, or it is to be anew."""
    path = _file(config)
    found = read_baselines(path) if path.is_file() else None
    if anew or found is None or DENSE not in found["baselines"]:
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
            _ = float(scores["accuracy"]), yardstick_decisions(scores)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not what `lexical-sae baselines` writes; delete it or make it anew") from error
    return saved


def yardstick_decisions(scores: Mapping[str, Any]) -> dict[int, Decisions]:
    """Which test texts a yardstick got right, by seed."""
    return {run["seed"]: Decisions(run["test_digest"], tuple(run["is_correct"])) for run in scores["runs"]}


def pairs_by_seed(
    models: Mapping[int, Decisions], yardstick: Mapping[int, Decisions]
) -> tuple[Sequence[Decisions], Sequence[Decisions]]:
    """Models of an experiment, and beside each the yardstick of its seed, or the first where there is none.

    Models that were tested on other texts than their yardstick are left out, as long as there are others.
    """
    first = next(iter(yardstick.values()))
    pairs = [(model, yardstick.get(seed, first)) for seed, model in models.items()]
    same = [pair for pair in pairs if pair[0].digest == pair[1].digest] or pairs[:1]
    return [model for model, _ in same], [other for _, other in same]


def _timed(measure: Callable[[], Runs]) -> dict[str, Any]:
    """A yardstick's scores with the seconds and the memory they took, all settings and seeds included."""
    runs, cost = with_cost(measure)
    first, _ = next(iter(runs.values()))
    of_seeds = [
        {"seed": seed, "accuracy": scores.accuracy, "test_digest": texts, "is_correct": list(scores.is_correct)}
        for seed, (scores, texts) in runs.items()
    ]
    accuracy = sum(run["accuracy"] for run in of_seeds) / len(of_seeds)
    chosen = {"setting": first.setting, "validation": first.validation}
    return {"name": first.name, "accuracy": accuracy, **chosen, "runs": of_seeds, **cost}


def _comparison(config: ExperimentConfig, baselines: dict[str, Any], device: str, on_step: OnStep) -> dict[str, Any]:
    """Accuracy of the experiment's models, and how much it is above that of each yardstick."""
    folders = {seed: model_folder(config, seed) for seed in config.evaluation.seeds}
    ours = {seed: _decisions(config, seed, own, device, on_step) for seed, own in folders.items() if own.is_dir()}
    if not ours:
        from_pretrained(model_folder(config))  # says what is missing
    accuracies = [sum(one.is_correct) / len(one.is_correct) for one in ours.values()]
    differences = {
        name: paired_difference(*pairs_by_seed(ours, yardstick_decisions(scores))) for name, scores in baselines.items()
    }
    return {
        "model": {"folder": str(folders[next(iter(ours))]), "accuracy": sum(accuracies) / len(ours), "seeds": [*ours]},
        "difference": {name: asdict(difference) for name, difference in differences.items()},
    }


def _decisions(config: ExperimentConfig, seed: int, own: Path, device: str, on_step: OnStep) -> Decisions:
    """Which of its test texts the model of a seed gets right."""
    dataset, model = load_data(config, seed), from_pretrained(own)
    require_same_experiment(config, own.parent)
    require_same_labels(model, dataset)
    scores = score(model.to(resolve_device(device)), dataset.test, on_step)
    return Decisions(digest(dataset.test), scores.is_correct, tuple(text_digests(dataset.test)))


def _file(config: ExperimentConfig) -> Path:
    return Path(config.output_dir) / BASELINES
