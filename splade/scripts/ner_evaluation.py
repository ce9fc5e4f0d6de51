"""What taggers' explanations are worth on test sentences, in `evaluation.json` beside each model."""

from pathlib import Path
from typing import Any

from splade.config.schema import ExperimentConfig
from splade.data.lots import rows_by_lot
from splade.device import resolve_device
from splade.evaluation.ner_faithfulness import measure_tags
from splade.models.persistence import from_pretrained
from splade.pipelines.evaluating import TEST, read_evaluation
from splade.runs import Watchers, seed_folders
from splade.scripts.ner_report import load_sentences
from splade.training.run_folder import EVALUATION, MODEL, write_json


def evaluate_taggers(
    config: ExperimentConfig, device: str = "auto", watchers: Watchers = Watchers()
) -> dict[int, dict[str, Any]]:
    """What `evaluation.json` of every seed's run says of its tagger; measured where it is not there yet.

    The saved model is read, so what is measured is what others will use. Test sentences beyond `evaluation.texts` are
    left out by lot.
    """
    return {seed: _of_run(config, seed, folder, device, watchers) for seed, folder in seed_folders(config).items()}


def saved_evaluations(config: ExperimentConfig) -> dict[int, dict[str, Any]]:
    """What is written of every seed's tagger so far."""
    folders = seed_folders(config).items()
    found = {seed: read_evaluation(folder / EVALUATION, config.evaluation.texts) for seed, folder in folders}
    return {seed: saved for seed, saved in found.items() if saved}


def _of_run(config: ExperimentConfig, seed: int, folder: Path, device: str, watchers: Watchers) -> dict[str, Any]:
    most, path = config.evaluation.texts, folder / EVALUATION
    if saved := read_evaluation(path, most):
        return saved
    model = from_pretrained(folder / MODEL).to(resolve_device(device))
    test = load_sentences(config, seed).test
    found = measure_tags(
        model,
        test.take(rows_by_lot(len(test), most, seed)),
        circuit_fraction=config.mechanistic.circuit_fraction,
        seed=seed,
        on_step=watchers.until_interrupted("evaluating; the training is complete"),
    )
    about = {"model": str(folder / MODEL), "data": config.data.dataset_name, "split": TEST, "most_texts": most}
    results = {**about, **found.as_dict()}
    write_json(path, results)
    return results
