"""Whether an experiment's words mean what they say, beside a bag of words."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from splade.config.schema import ExperimentConfig
from splade.evaluation.names import measure_names, strongest_words
from splade.evaluation.names_bag import BagOfWords
from splade.models.persistence import from_pretrained
from splade.pipelines.inputs import draw, load_data, model_folder, require_same_experiment, require_same_labels
from splade.progress import OnStep, silent
from splade.training.run_folder import NAMES, write_json

READ_AT_MOST = 2000
"""Test texts behind the strongest words of each class, drawn by lot."""


def run_names(
    config: ExperimentConfig, *, texts: int = 200, words: int = 20, on_step: OnStep = silent
) -> dict[str, Any]:
    """Name scores of the experiment's model beside those of a bag of words, written to `names.json`."""
    seed, place = config.evaluation.seeds[0], Path(config.output_dir)
    dataset = load_data(config, seed)
    own = model_folder(config)
    model = from_pretrained(own)
    require_same_experiment(config, own.parent)
    require_same_labels(model, dataset)
    bag = BagOfWords(dataset.train.texts, dataset.train.labels)
    corpus = dataset.train.texts
    read = draw(dataset.test, READ_AT_MOST, seed)
    strongest = strongest_words(model, read.texts, read.labels, words, on_step)
    results = {
        "model": measure_names(model, dataset.test.texts, corpus, seed, texts, on_step).as_dict(),
        "bag of words": measure_names(bag, dataset.test.texts, corpus, seed, texts, on_step).as_dict(),
        "strongest_words": {dataset.label_names[c]: [asdict(w) for w in ws] for c, ws in strongest.items()},
    }
    write_json(place / NAMES, results)
    return results


def read_names(folder: Path, texts: int) -> dict[str, Any] | None:
    """What `names.json` says, if it was measured on so many texts."""
    path = folder / NAMES
    names = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    return names if names and names["model"]["texts"] == texts else None
