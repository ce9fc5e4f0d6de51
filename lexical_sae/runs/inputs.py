"""The texts and sentences that an experiment's settings name."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from lexical_sae.config.schema import ExperimentConfig
from lexical_sae.data import TaggedDataset, TextDataset, TextSplit, load_tagged_dataset, load_text_dataset
from lexical_sae.data.batches import tokenize
from lexical_sae.data.polarity import negation_examples, positive_class
from lexical_sae.data.same_text import rows_held
from lexical_sae.data.targets import LabelColumns
from lexical_sae.models.lexical_sae import CLASSIFY, LexicalSAE
from lexical_sae.outputs import CLASSES, OUTPUTS, Classes
from lexical_sae.recipes.recipe import Recipe
from lexical_sae.runs.texts import read_texts
from lexical_sae.training.tasks import Documents
from lexical_sae.training.unlabelled import UnlabelledTexts
from lexical_sae.utils.errors import DataError, SettingsError

MOST_NEGATIONS = 2100
MOST_UNLABELLED = 5000
"""Texts without a label that are read at most: more change little, and a CPU reads so many in a minute."""


def load_data(config: ExperimentConfig, seed: int) -> TextDataset:
    """The data set that the settings name."""
    data = config.data
    if data.documents is not None:
        raise SettingsError(
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
        label_columns=data.label_columns,
        label_separator=data.label_separator,
        target=data.target,
        skip_bad_rows=data.skip_bad_rows,
    )


def with_unlabelled(dataset: TextDataset, config: ExperimentConfig, seed: int) -> TextDataset:
    """The data set with the unlabelled texts that the settings name; they are needed by training alone."""
    data = config.data
    if data.unlabelled is None:
        return dataset
    require_literal_words(config)
    texts, notes = read_texts(Path(data.unlabelled), data.text_column, skip_bad_rows=data.skip_bad_rows)
    chosen, told = chosen_unlabelled(texts, dataset, seed)
    return replace(dataset, unlabelled=chosen, notes=(*dataset.notes, *notes, *told))


def chosen_unlabelled(texts: Sequence[str], dataset: TextDataset, seed: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Those of some texts that are read without a label, and notes on them.

    Every text once; not those that a run is judged on, nor those that are learned from anyway.
    """
    known = {*dataset.train.keys(), *dataset.validation.keys()}
    held = rows_held(texts, (*dataset.validation.texts, *dataset.test.texts))
    keys = TextSplit(tuple(texts), (0,) * len(texts)).keys()
    first = {key: row for row, key in reversed(list(enumerate(keys))) if key not in known and row not in held}
    rows = sorted(first.values())
    if not rows:
        raise DataError(
            f"of {len(texts)} unlabelled texts none is left: all are among the labelled ones; give others, or none"
        )
    chosen: list[int] = sorted(
        np.random.default_rng([seed, MOST_UNLABELLED]).permutation(rows)[:MOST_UNLABELLED].tolist()
    )
    of_all = "" if len(chosen) == len(texts) else f" of {len(texts):,}, without those that are labelled or repeated"
    most = f", {MOST_UNLABELLED:,} at most" if len(chosen) < len(rows) else ""
    note = f"words are read in {len(chosen):,} unlabelled texts too{of_all}{most}; no label is taken from them"
    return tuple(texts[row] for row in chosen), (note,)


def unlabelled_texts(dataset: TextDataset, settings: Recipe) -> UnlabelledTexts | None:
    """A data set's texts without a label as training wants them; None where there are none."""
    if not dataset.unlabelled:
        return None
    require_literal_words(settings)
    return UnlabelledTexts(dataset.unlabelled)


def require_literal_words(settings: Recipe) -> None:
    """Refuse unlabelled texts for a recipe without a table of words."""
    if settings.model.literal is None:
        raise SettingsError(
            "unlabelled texts sharpen a table of literal words, which this recipe does not have; leave them out, or "
            "use the recipe anchored"
        )


def output_of(config: ExperimentConfig) -> str:
    """Name of the output kind that the settings ask for; no row is read."""
    data = config.data
    return LabelColumns(data.label_column, data.label_columns, data.label_separator, data.target).reader().output


def require_classes(config: ExperimentConfig, what: str) -> None:
    """Refuse an experiment whose texts do not have one label each, for what has no meaning there."""
    if (output := output_of(config)) != CLASSES.kind:
        raise SettingsError(
            f"{what} is for texts with {CLASSES.title}, and {config.experiment_name} has {OUTPUTS[output].title}; "
            "`lexical-sae evaluate` and `report` show how good it is"
        )


def load_sentences(config: ExperimentConfig, seed: int) -> TaggedDataset:
    """The tagging data set that the settings name."""
    data = config.data
    if data.unlabelled is not None:
        raise SettingsError("data.unlabelled is for texts with a label each; leave it out where words are tagged")
    return load_tagged_dataset(
        data.dataset_name, path=data.path, train_samples=data.train_samples, test_samples=data.test_samples, seed=seed
    )


def documents(model: LexicalSAE, split: TextSplit) -> Documents:
    """A split as the training loop wants it."""
    texts, labels = tokenize(model.tokenizer, split.texts, model.max_length), model.output.targets(split.labels)
    weights = None if split.weights is None else torch.tensor(split.weights)
    return Documents(texts, labels, weights=weights)


def training_documents(model: LexicalSAE, dataset: TextDataset, share: float, seed: int) -> Documents:
    """The training texts; for literal words and a task of sentiment, with some sentences about negation."""
    positive = positive_class(dataset.label_names) if isinstance(model.output, Classes) else None
    count = min(MOST_NEGATIONS, round(share * len(dataset.train)))
    if model.literal is None or positive is None or not count:
        return documents(model, dataset.train)
    made = negation_examples(count, positive, seed)
    given = dataset.train
    weights = given.weights and given.weights + (1.0,) * len(made)
    joined = TextSplit(given.texts + made.texts, given.labels + made.labels, weights=weights)
    return replace(documents(model, joined), num_made=len(made))


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


def require_same_labels(model: LexicalSAE, dataset: TextDataset) -> None:
    """Refuse data whose labels are not the model's: they are numbers from here on, and would be other classes."""
    model.head(CLASSIFY)
    theirs, ours = tuple(dataset.label_names), tuple(model.labels[CLASSIFY])
    if dataset.output != model.output.kind:
        raise SettingsError(
            f"{dataset.name} has {OUTPUTS[dataset.output].title}, and the model was trained on {model.output.title}; "
            "give data of that kind (label_columns, label_separator, target)"
        )
    if theirs != ours:
        raise SettingsError(
            f"the labels of {dataset.name} are {', '.join(theirs)}, those of the model {', '.join(ours)}: the data "
            "changed since training; restore it, or train again"
        )
