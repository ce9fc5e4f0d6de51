"""What users of scikit-learn and pandas pass in, as texts, class names and weights; what cannot be used is refused."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from jaxtyping import Float, Int
from numpy import ndarray
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from lexical_sae.data.tables.cell_values import is_missing, label_text, repair_text
from lexical_sae.data.tables.frames import column_values
from lexical_sae.data.targets import as_number, number_problem
from lexical_sae.utils.errors import DataError

ROWS_NAMED = 5
"""Rows that an error names."""
AS_MATRIX = (
    "give an indicator matrix, a column of 0 and 1 per label "
    "(sklearn.preprocessing.MultiLabelBinarizer makes one of lists)"
)


def texts_of(X: Any, name: str = "X") -> list[str]:
    """The texts of a list, tuple, array, Series or one-column frame; anything but strings is refused with its rows.

    Example: `texts_of(frame[["review"]])` -> ["a warm film", ...]
    """
    if isinstance(X, str | bytes):
        raise DataError(f"{name} is one {type(X).__name__}, not a list of texts; write [text]")
    rows = _column(X, name)
    odd = [row for row, text in enumerate(rows) if not isinstance(text, str)]
    if odd:
        first = rows[odd[0]]
        found = "nothing" if is_missing(first) else f"{type(first).__name__} {first!r:.60}"
        named = ", ".join(map(str, odd[:ROWS_NAMED])) + (", …" if len(odd) > ROWS_NAMED else "")
        raise DataError(
            f"{len(odd)} of {len(rows)} rows of {name} are no text (rows {named}, counted from 0; row {odd[0]} is "
            f"{found}); leave them out first, such as with frame.dropna(subset=['text', 'label'])"
        )
    return [repair_text(str(text)) for text in rows]


def _column(X: Any, name: str) -> list[Any]:
    """The rows of whatever has one column."""
    if isinstance(X, dict):
        raise DataError(f"{name} is a dict; pass one of its columns, such as {name}['text']")
    X = column_values(X)
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape) == 2:
        if shape[1] != 1:
            raise DataError(f"{name} has {shape[1]} columns; pass the one with the texts, such as frame['text']")
        X = X[:, 0]
    elif shape is not None and len(shape) != 1:
        raise DataError(f"{name} has {len(shape)} dimensions; pass one text per row. Reshape your data")
    if not isinstance(X, Iterable):
        raise DataError(f"{name} is {type(X).__name__}; pass a list, an array, a Series or a one-column frame of texts")
    return list(X.tolist() if isinstance(X, np.ndarray) else X)


@dataclass(frozen=True)
class Classes:
    """The classes of some labels: as given, and by the names that a model knows them under."""

    values: np.ndarray
    """Sorted, as `classes_` has them."""
    names: tuple[str, ...]
    """The name of each, in the same order."""
    of_rows: tuple[str, ...]
    """The name of every row's label."""


def classes_of(y: Any) -> tuple[np.ndarray, Classes]:
    """The labels as one array, and their classes; two classes with the same name are refused."""
    labels = labels_of(y)
    values = _distinct(labels)
    names = tuple(label_text(value) for value in values)
    for name, value in zip(names, values, strict=True):
        same = [other for other, its_name in zip(values, names, strict=True) if its_name == name]
        if len(same) > 1:
            raise DataError(
                f"the classes {_shown(same[0])} and {_shown(same[1])} are both written {name!r}; write them alike, or "
                "differently"
            )
        if not name:
            raise DataError(f"the class {_shown(value)} is written with no character; give it a name")
    if len(values) == 1:
        raise DataError(f"y has only one class, {_shown(values[0])}; a classifier needs at least two")
    return labels, Classes(values, names, tuple(label_text(label) for label in labels))


def is_indicator(y: Any) -> bool:
    """Whether labels come as a matrix with several columns, or as one sparse one."""
    if scipy.sparse.issparse(y):
        return True
    shape = getattr(column_values(y), "shape", None)
    if shape is None and isinstance(y, list | tuple) and y and isinstance(y[0], list | tuple | np.ndarray):
        if len({len(row) if isinstance(row, list | tuple | np.ndarray) else 1 for row in y}) > 1:
            raise DataError(f"the rows of y are of several lengths; {AS_MATRIX}")
        shape = np.shape(y)
    return shape is not None and len(shape) == 2 and shape[1] > 1


def indicator_of(y: Any) -> tuple[Int[ndarray, "N L"], np.ndarray]:
    """A matrix of 0 and 1, and the labels that its columns stand for: a frame's names, otherwise their places."""
    names = getattr(y, "columns", None)
    found = y.toarray() if scipy.sparse.issparse(y) else np.asarray(column_values(y))
    if found.ndim != 2 or not np.isin(found, (0, 1)).all():
        raise DataError(f"y is a matrix, but not of 0 and 1; {AS_MATRIX}")
    values = np.arange(found.shape[1]) if names is None else np.array([str(name) for name in names], dtype=object)
    if len({label_text(value) for value in values}) < len(values):
        raise DataError(f"y has two columns of one name ({', '.join(map(str, values))}); rename one")
    return found.astype(np.int64), values


def numbers_of(y: Any) -> Float[ndarray, " N"]:
    """The numbers of texts; anything else is refused with its row."""
    if y is None:
        raise DataError("this estimator requires y to be passed, but the target y is None")
    values = column_or_1d(column_values(y), warn=True)
    if bad := [(row, problem) for row, value in enumerate(values) if (problem := number_problem(value))]:
        row, problem = bad[0]
        raise DataError(
            f"y is no number in {len(bad)} of {len(values)} rows (row {row}: {problem.partition(';')[0]}): Input y "
            "contains NaN, infinity or text; for names of classes use LexicalClassifier"
        )
    return np.array([as_number(value) for value in values], dtype=np.float64)


def name_of(y: Any) -> str:
    """What a column of numbers is called. Example: a Series named stars -> "stars" """
    name = getattr(y, "name", None)
    return str(name) if isinstance(name, str) and name.strip() else "number"


def _shown(label: Any) -> str:
    """A label as Python writes it, without the type that numpy has for it."""
    return repr(label.item() if isinstance(label, np.generic) else label)


def labels_of(y: Any) -> np.ndarray:
    """One label per row, as one array; what is no label, or missing, is refused."""
    if y is None:
        raise DataError("this estimator requires y to be passed, but the target y is None")
    y = column_values(y)
    if isinstance(y, list | tuple) and len({isinstance(label, str) for label in y}) == 2:
        # numpy would write numbers beside names as names.
        found = np.empty(len(y), dtype=object)
        found[:] = y
        y = found
    shape = getattr(y, "shape", ())
    if len(shape) == 2 and shape[1] > 1:
        raise DataError(f"y has {shape[1]} columns; each text has one label here")
    labels = column_or_1d(y, warn=True)
    if missing := [row for row, label in enumerate(labels) if is_missing(label)]:
        raise DataError(
            f"y has no label in {len(missing)} rows (the first is row {missing[0]}, counted from 0): Input y contains "
            "NaN; leave them out first, such as with frame.dropna(subset=['text', 'label']), or give them as "
            "unlabelled="
        )
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    if several := [row for row, label in enumerate(labels) if isinstance(label, list | set | np.ndarray)]:
        raise DataError(
            f"y[{several[0]}] is a {type(labels[several[0]]).__name__}; where a text has labels, {AS_MATRIX}"
        )
    if labels.dtype.kind == "T":
        # scikit-learn does not know numpy's strings of any length.
        labels = np.asarray(labels.tolist())
    if labels.dtype.kind == "f" and (labels % 1).any():
        raise DataError(
            "Unknown label type: continuous. A LexicalRegressor predicts numbers; for classes that are written as "
            "numbers, give strings"
        )
    if labels.dtype.kind != "O":
        check_classification_targets(labels)
    return labels


def _distinct(labels: np.ndarray) -> np.ndarray:
    try:
        return np.unique(labels)
    except TypeError:
        # Labels of several types have no order of their own.
        values = sorted(set(labels.tolist()), key=lambda value: (type(value).__name__, str(value)))
        found = np.empty(len(values), dtype=object)
        found[:] = values
        return found


def weights_of(sample_weight: Any, class_weight: Any, labels: np.ndarray) -> np.ndarray | None:
    """The weight of every row with a mean of one; None where all rows count the same."""
    weights = np.ones(len(labels))
    if sample_weight is not None:
        weights = np.asarray(sample_weight, dtype=np.float64)
        if weights.shape != (len(labels),):
            raise DataError(f"sample_weight has the shape {weights.shape}; give one number per row, ({len(labels)},)")
        if not np.isfinite(weights).all() or (weights < 0).any():
            raise DataError("sample_weight holds a negative number, NaN or infinity; give numbers from 0 up")
    if class_weight is not None:
        weights = weights * compute_sample_weight(class_weight, labels)
    if not weights.any():
        raise DataError("Sample weights must contain at least one non-zero number.")
    if (weights == weights[0]).all():
        return None
    return weights / weights[weights > 0].mean()
