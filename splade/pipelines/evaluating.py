"""The evaluation suite on the models that an experiment left, in `evaluation.json` beside each."""

import json
from pathlib import Path
from typing import Any

from splade.config.schema import ExperimentConfig
from splade.device import resolve_device
from splade.evaluation.suite import EvaluationSettings, evaluate
from splade.models.persistence import from_pretrained
from splade.pipelines.inputs import draw, load_data, require_same_labels
from splade.pipelines.sae_comparison import RESULTS, compare_with_saes, write_comparison
from splade.pipelines.scoring import require_same_rows
from splade.runs import Watchers, seed_folders
from splade.training.posthoc_sae import SAESettings
from splade.training.run_folder import EVALUATION, MODEL, write_json

TEST = "test"


def evaluate_runs(
    config: ExperimentConfig, device: str = "auto", watchers: Watchers = Watchers()
) -> dict[int, dict[str, Any]]:
    """What `evaluation.json` of every seed's run says of its model on test texts; measured where it is not there yet.

    The saved model is read, so what is measured is what others will use. Test texts beyond `evaluation.texts` are left
    out by lot.
    """
    return {seed: _of_run(config, seed, folder, device, watchers) for seed, folder in seed_folders(config).items()}


def _of_run(config: ExperimentConfig, seed: int, folder: Path, device: str, watchers: Watchers) -> dict[str, Any]:
    most = config.evaluation.texts
    wants_saes = config.mechanistic.sae_comparison and not (folder / RESULTS).is_file()
    saved = read_evaluation(folder / EVALUATION, most)
    if saved and not wants_saes:
        return saved
    model = from_pretrained(folder / MODEL).to(resolve_device(device))
    dataset = load_data(config, seed)
    require_same_labels(model, dataset)
    require_same_rows(folder, dataset)
    on_step = watchers.until_interrupted("evaluating; the training is complete")
    if wants_saes:
        write_comparison(compare_with_saes(model, dataset, SAESettings(seed=seed), on_step=on_step), folder)
    if saved:
        return saved
    settings = EvaluationSettings(
        circuit_fraction=config.mechanistic.circuit_fraction,
        explainer_texts=config.evaluation.explainer_texts,
        seed=seed,
    )
    results = evaluate(model, draw(dataset.test, most, seed), settings, on_step)
    about = {"model": str(folder / MODEL), "data": config.data.dataset_name, "split": TEST, "most_texts": most}
    found = {**about, **results.as_dict()}
    write_json(folder / EVALUATION, found)
    return found


def read_evaluation(path: Path, most_texts: int) -> dict[str, Any] | None:
    """What the file says, if it is about a run's test texts and as many of them; a damaged one is made anew."""
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        is_it = saved["split"] == TEST and saved["most_texts"] == most_texts
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return saved if is_it else None
