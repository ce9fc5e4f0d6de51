"""Labelled texts to measure a model on, without those that its run learned from.

A run leaves its settings beside its model, so its rows are known. Of the file or data set that it was made of, only its
test texts are used; of any other, texts that are among its training or validation texts are left out, with a warning.
They are looked for by their letters (`lexical_sae.data.same_text`), however another data set writes them.
"""

from dataclasses import dataclass
from pathlib import Path

from lexical_sae.config.schema import DataConfig, ExperimentConfig
from lexical_sae.data.examples import TextDataset, TextSplit
from lexical_sae.data.same_text import letters_of, rows_held
from lexical_sae.data.sources.registry import TEXT_DATASETS
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.runs.inputs import require_same_labels
from lexical_sae.runs.run import Run
from lexical_sae.runs.texts import Columns, labelled_texts
from lexical_sae.utils.errors import DataError


@dataclass(frozen=True)
class UnseenTexts:
    """Texts with their classes, and what is to be said of them."""

    split: TextSplit
    notes: tuple[str, ...] = ()
    warning: str = ""
    """What was left out, or could not be known; empty if nothing."""
    tested: ExperimentConfig | None = None
    """Settings of the run, if the texts are its own test texts."""
    trained_on: tuple[str, ...] = ()
    """Its training texts then: word frequencies are counted in them, as after training."""


def unseen_texts(model: LexicalSAE, run: Run | None, data: str, columns: Columns = Columns()) -> UnseenTexts:
    """The texts of a file or data set that a model did not learn from; all of them, where its run is not known.

    Args:
        model: The model; its labels say how classes are numbered.
        run: The run that made it, if there is one.
        data: A file, or the name of a data set.
        columns: Which columns of a file hold what.
    """
    if run is None:
        return UnseenTexts(*labelled_texts(model, data, columns))
    try:
        is_own = _is_same(run.config.data, data, columns)
        dataset = run.data
    except (ValueError, OSError, RuntimeError) as error:
        return UnseenTexts(*labelled_texts(model, data, columns), _unknown(error))
    if not is_own:
        split, notes = labelled_texts(model, data, columns)
        left = _without_learned(split, dataset, data)
        return UnseenTexts(left.split, notes, left.warning)
    require_same_labels(model, dataset)
    warning = f"this model was trained on {data}: only the {len(dataset.test)} test texts of its run are used"
    return UnseenTexts(dataset.test, dataset.notes, warning, run.config, dataset.train.texts)


def unseen_of(run: Run, split: TextSplit, name: str) -> UnseenTexts:
    """The texts that a run did not learn from; all of them, with a warning, where its data cannot be had."""
    try:
        dataset = run.data
    except (ValueError, OSError, RuntimeError) as error:
        return UnseenTexts(split, warning=_unknown(error))
    return _without_learned(split, dataset, name)


def warning_of_learned(split: TextSplit, run: Run | None) -> str:
    """A warning where a run learned from some of the texts, or may have; else nothing."""
    if run is None:
        return ""
    try:
        count = len(_learned(split, run.data))
    except (ValueError, OSError, RuntimeError) as error:
        return _unknown(error)
    if not count:
        return ""
    return (
        f"the model was trained on {count} of these {len(split)} texts, on which both accuracies look better than they "
        "are; for the accuracy to count, give texts that it has not seen"
    )


def _unknown(error: Exception) -> str:
    return f"it is not known which of these texts the model was trained on: its run's data cannot be had ({error})"


def _learned(split: TextSplit, dataset: TextDataset) -> set[int]:
    """Rows that training or validation texts hold; one that a published set has in the test too belongs there."""
    tested = set(map(letters_of, dataset.test.texts))
    held = rows_held(split.texts, (*dataset.train.texts, *dataset.validation.texts))
    return {row for row in held if letters_of(split.texts[row]) not in tested}


def _without_learned(split: TextSplit, dataset: TextDataset, name: str) -> UnseenTexts:
    """The texts that are not among those of training and validation, and how many that leaves out."""
    learned = _learned(split, dataset)
    rows = [row for row in range(len(split)) if row not in learned]
    if not rows:
        raise DataError(
            f"this model was trained on every text of {name}, and would look better than it is; give texts that it has "
            "not seen"
        )
    if len(rows) == len(split):
        return UnseenTexts(split)
    warning = (
        f"this model was trained on {len(split) - len(rows)} of the {len(split)} texts of {name}, on which it would "
        f"look better than it is: they are left out, and {len(rows)} are measured"
    )
    return UnseenTexts(split.take(rows), warning=warning)


def _is_same(own: DataConfig, data: str, columns: Columns) -> bool:
    """Whether a run was made of this file or data set, and of these columns of it."""
    asked = (columns.text, columns.label, columns.labels or None, columns.separator)
    known = (own.text_column, own.label_column, own.label_columns, own.label_separator)
    is_other_column = any(one not in (None, its) for one, its in zip(asked, known, strict=True))
    if data in TEXT_DATASETS or own.dataset_name in TEXT_DATASETS:
        return data == own.dataset_name and not is_other_column
    return Path(data).resolve() == Path(own.path or own.dataset_name).expanduser().resolve() and not is_other_column
