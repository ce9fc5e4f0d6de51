"""What an experiment's settings lead to: its texts, and the model that it left."""

import hashlib
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import torch
from pydantic import ValidationError

from splade.config.schema import ExperimentConfig
from splade.data import TextDataset, TextSplit, load_text_dataset
from splade.data.batches import tokenise
from splade.data.lots import rows_by_lot
from splade.data.polarity import negation_examples, positive_class
from splade.models.lexical_sae import CLASSIFY, LexicalSAE
from splade.training.run_folder import CONFIG, MODEL, read_settings
from splade.training.tasks import Documents


def load_data(config: ExperimentConfig, seed: int) -> TextDataset:
    """The data set that the settings name."""
    data = config.data
    if data.documents is not None:
        raise ValueError(
            f"data.documents ({data.documents}) is for models that also tag: train with `lexical-sae ner`, or name the "
            "texts as data.dataset_name"
        )
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


MOST_NEGATIONS = 2100


def training_documents(model: LexicalSAE, dataset: TextDataset, share: float, seed: int) -> Documents:
    """The training texts; for literal words and a task of sentiment, with some sentences about negation."""
    positive = positive_class(dataset.label_names)
    count = min(MOST_NEGATIONS, round(share * len(dataset.train)))
    if model.literal is None or positive is None or not count:
        return documents(model, dataset.train)
    made = negation_examples(count, positive, seed)
    joined = TextSplit(dataset.train.texts + made.texts, dataset.train.labels + made.labels)
    return replace(documents(model, joined), num_made=len(made))


def draw(split: TextSplit, most: int, seed: int) -> TextSplit:
    """Up to `most` texts by lot, in their order; 0 takes all."""
    rows = rows_by_lot(len(split), most, seed)
    return split if len(rows) == len(split) else split.take(rows)


def digest(split: TextSplit) -> str:
    """A hash of the texts and labels, in order."""
    return hashlib.sha256(json.dumps([list(split.texts), list(split.labels)]).encode()).hexdigest()


def text_digests(split: TextSplit) -> list[str]:
    """A hash of each text with its label; the second of two equal ones has another, and so on."""
    seen: Counter[tuple[str, int]] = Counter()
    found = []
    for row in zip(split.texts, split.labels, strict=True):
        found.append(hashlib.sha256(json.dumps([*row, seen[row]]).encode()).hexdigest()[:16])
        seen[row] += 1
    return found


def model_folder(config: ExperimentConfig, seed: int | None = None) -> Path:
    """Where the run of a seed, by default the first, left its model."""
    place = Path(config.output_dir)
    seed = config.evaluation.seeds[0] if seed is None else seed
    return next((p for p in (place / MODEL, place / f"seed-{seed}" / MODEL) if p.is_dir()), place / MODEL)


def require_same_experiment(config: ExperimentConfig, folder: Path) -> None:
    """Refuse to measure a model on rows that it may have learned from: data, model and seeds must be those it had."""
    if not (folder / CONFIG).is_file():
        raise ValueError(
            f"there is no {folder / CONFIG}, so it is not known what the model learned from; copy the whole "
            "folder of the run, or measure the model alone with `lexical-sae evaluate`"
        )
    saved = read_settings(folder)
    try:
        # A setting that is younger than the run has its default there.
        saved = json.loads(ExperimentConfig.model_validate(saved).model_dump_json())
    except ValidationError:
        # Settings that are no longer known differ from any.
        saved = saved if isinstance(saved, dict) else {}
    given = json.loads(config.model_dump_json())
    odd = [part for part in ("data", "model") if saved.get(part) != given[part]]
    if saved.get("evaluation", {}).get("seeds") != given["evaluation"]["seeds"]:
        odd.append("evaluation.seeds")
    if odd:
        raise ValueError(
            f"the run in {folder} was made with other settings ({', '.join(odd)}), so its test texts may differ; "
            "give the experiment that made it"
        )


def require_same_labels(model: LexicalSAE, dataset: TextDataset) -> None:
    """Refuse data whose labels are not the model's: they are numbers from here on, and would be other classes."""
    model.head(CLASSIFY)
    theirs, ours = tuple(dataset.label_names), tuple(model.labels[CLASSIFY])
    if theirs != ours:
        raise ValueError(
            f"the labels of {dataset.name} are {', '.join(theirs)}, those of the model {', '.join(ours)}: the data "
            "changed since training; restore it, or train anew"
        )
