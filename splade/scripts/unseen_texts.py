"""Labelled texts to measure a model on, without those that its run learned from.

A run leaves its settings beside its model, so its rows are known. Of the file or data set that it was made of, only its
test texts are read; of any other, what is among its training or validation texts is left out, and counted aloud.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from splade.scripts.corpus import Columns, labelled_texts

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from splade.config.schema import DataConfig, ExperimentConfig
    from splade.data.examples import TextDataset, TextSplit
    from splade.models.lexical_sae import LexicalSAE


@dataclass(frozen=True)
class UnseenTexts:
    """Texts with their classes, and what is to be said of them."""

    split: "TextSplit"
    notes: tuple[str, ...]
    warning: str = ""
    """What was left out, or could not be known; empty if nothing."""
    tested: "ExperimentConfig | None" = None
    """Settings of the run, if the texts are its own test texts."""
    trained_on: "tuple[str, ...]" = ()
    """Its training texts then: how frequent words are is counted in them, as after training."""


def unseen_texts(model: "LexicalSAE", folder: Path, data: str, columns: Columns) -> UnseenTexts:
    """The texts of a file or data set that the run in the folder did not learn from; all, where the folder has none."""
    from splade.config.load import load_config
    from splade.pipelines import require_same_labels
    from splade.training.run_folder import CONFIG

    if not (folder / CONFIG).is_file():
        return UnseenTexts(*labelled_texts(model, data, columns))
    try:
        config = load_config(folder / CONFIG)
        dataset = rows_of_run(config, folder)
    except (ValueError, OSError, RuntimeError) as error:
        return UnseenTexts(*labelled_texts(model, data, columns), _unknown(error))
    if not _is_same(config.data, data, columns):
        split, notes = labelled_texts(model, data, columns)
        left, told = _without_learned(split, dataset, data)
        return UnseenTexts(left, notes, told)
    require_same_labels(model, dataset)
    told = f"this model was trained on {data}: only the {len(dataset.test)} test texts of its run are read"
    return UnseenTexts(dataset.test, dataset.notes, told, config, dataset.train.texts)


def told_of_learned(split: "TextSplit", folder: Path) -> str:
    """What is to be said where a run in the folder learned from some of the texts, or may have; else nothing."""
    from splade.config.load import load_config
    from splade.training.run_folder import CONFIG

    if not (folder / CONFIG).is_file():
        return ""
    try:
        learned = _learned(rows_of_run(load_config(folder / CONFIG), folder))
    except (ValueError, OSError, RuntimeError) as error:
        return _unknown(error)
    own = split.keys()
    if not (count := sum(key in learned for key in own)):
        return ""
    return (
        f"the model was trained on {count} of these {len(own)} texts, on which both accuracies look better than they "
        "are; for the accuracy to count, give texts that it has not seen"
    )


def _unknown(error: Exception) -> str:
    return f"it is not known which of these texts the model was trained on: its run's data cannot be had ({error})"


def _learned(dataset: "TextDataset") -> set[str]:
    """Keys of the training and validation texts; one that a published set has in the test too belongs there."""
    return {*dataset.train.keys(), *dataset.validation.keys()} - set(dataset.test.keys())


def _without_learned(split: "TextSplit", dataset: "TextDataset", data: str) -> "tuple[TextSplit, str]":
    """The texts that are not among those of training and validation, and how many that leaves out."""
    learned = _learned(dataset)
    rows = [row for row, key in enumerate(split.keys()) if key not in learned]
    if not rows:
        raise ValueError(
            f"this model was trained on every text of {data}, and would look better than it is; give texts that it has "
            "not seen"
        )
    if len(rows) == len(split):
        return split, ""
    told = (
        f"this model was trained on {len(split) - len(rows)} of the {len(split)} texts of {data}, on which it would "
        f"look better than it is: they are left out, and {len(rows)} are measured"
    )
    return split.take(rows), told


def rows_of_run(config: "ExperimentConfig", folder: Path) -> "TextDataset":
    """The rows that a run had, refused where they are no longer those that it was tested on."""
    from splade.pipelines import load_data, require_same_rows
    from splade.scripts.report_files import RunFiles

    seed = RunFiles(folder).seed()
    dataset = load_data(config, config.evaluation.seeds[0] if seed is None else seed)
    require_same_rows(folder, dataset)
    return dataset


def _is_same(own: "DataConfig", data: str, columns: Columns) -> bool:
    """Whether a run was made of this file or data set, and of these columns of it."""
    from splade.data.registry import TEXT_DATASETS

    is_other_column = columns.text not in (None, own.text_column) or columns.label not in (None, own.label_column)
    if data in TEXT_DATASETS or own.dataset_name in TEXT_DATASETS:
        return data == own.dataset_name and not is_other_column
    return Path(data).resolve() == Path(own.path or own.dataset_name).expanduser().resolve() and not is_other_column
