"""The yardsticks of an experiment on its own rows, in `baselines.json`: the dense twin, and TF-IDF as the floor."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from splade.config.schema import ExperimentConfig
from splade.data import TextDataset
from splade.device import resolve_device
from splade.evaluation.arena.cost import with_cost
from splade.evaluation.intervals import paired_bootstrap
from splade.models.persistence import from_pretrained
from splade.pipelines.inputs import digest, load_data, model_folder, require_same_experiment, require_same_labels
from splade.pipelines.scoring import score
from splade.progress import OnStep, silent
from splade.runs import Watchers
from splade.training.baselines import BaselineScores, dense_twin, tfidf_baseline
from splade.training.fine_tuning import DENSE_RATES
from splade.training.run_folder import BASELINES, write_json

DENSE = "dense twin"


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
    found = [_timed(lambda: tfidf_baseline(dataset, on_step))]
    if dense_rates:
        found.append(
            _timed(
                lambda: dense_twin(
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
        )
    results = {
        "test_texts": len(dataset.test),
        "test_digest": digest(dataset.test),
        "baselines": {scores["name"]: scores for scores in found},
    }
    if model_folder(config).is_dir():
        results |= _comparison(config, dataset, results["baselines"], device, on_step)
    write_json(_file(config), results)
    return results


def compare_again(config: ExperimentConfig, device: str = "auto", *, on_step: OnStep = silent) -> dict[str, Any]:
    """The experiment's model against the yardsticks that `baselines.json` holds, which is written anew.

    For a model that is new where the test texts are not: no yardstick is trained.
    """
    path = _file(config)
    if not path.is_file():
        raise ValueError(f"there is no {path} to compare with; measure the yardsticks first")
    results = json.loads(path.read_text(encoding="utf-8"))
    dataset = load_data(config, config.evaluation.seeds[0])
    if results.get("test_digest") != digest(dataset.test):
        raise ValueError(f"{path} was measured on other test texts; measure the yardsticks anew")
    results |= _comparison(config, dataset, results["baselines"], device, on_step)
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
        _ = int(saved["test_texts"]), [float(scores["accuracy"]) for scores in saved["baselines"].values()]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not what `lexical-sae baselines` writes; delete it or make it anew") from error
    return saved


def _timed(measure: Callable[[], BaselineScores]) -> dict[str, Any]:
    """A yardstick's scores with the seconds and the memory they took, all settings that were tried included."""
    scores, cost = with_cost(measure)
    return {**asdict(scores), **cost}


def _comparison(
    config: ExperimentConfig, dataset: TextDataset, baselines: dict[str, Any], device: str, on_step: OnStep
) -> dict[str, Any]:
    """Accuracy of the experiment's model, and how much it is above that of each yardstick."""
    own = model_folder(config)
    model = from_pretrained(own)
    require_same_experiment(config, own.parent)
    require_same_labels(model, dataset)
    ours = score(model.to(resolve_device(device)), dataset.test, on_step)
    differences = {name: paired_bootstrap(ours.is_correct, theirs["is_correct"]) for name, theirs in baselines.items()}
    return {
        "model": {"folder": str(own), "accuracy": ours.accuracy},
        "difference": {name: asdict(difference) for name, difference in differences.items()},
    }


def _file(config: ExperimentConfig) -> Path:
    return Path(config.output_dir) / BASELINES
