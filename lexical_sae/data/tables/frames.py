"""Rows that other libraries hold: frames and Series of pandas, polars, pyarrow and DuckDB, and Hugging Face data sets.

None of these libraries is imported here: `narwhals` knows them by their objects.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
from narwhals.exceptions import DuplicateError

from lexical_sae.data.tables.table import Table, refuse_repeated
from lexical_sae.utils.errors import DataError, MissingPackageError, UnavailableError


def frame_table(source: str, rows: Any) -> Table | None:
    """The rows of a frame, lazy or not, or of a `datasets.Dataset`; None for anything else."""
    return _with_class_names(source, rows) if is_hub_dataset(rows) else _frame_table(source, rows)


def column_values(X: Any) -> Any:
    """A Series, an Arrow array or a frame as a numpy array, one-dimensional if it has one column; else `X` itself."""
    try:
        return _column_values(X)
    except DuplicateError as error:
        raise DataError(
            "two columns have one name, and frame['name'] gives both; rename one, or pass one, such as frame.iloc[:, 0]"
        ) from error


def _column_values(X: Any) -> Any:
    held = nw.from_native(X, pass_through=True, allow_series=True)
    if isinstance(held, nw.LazyFrame):
        held = _collected(held)
    if isinstance(held, nw.DataFrame) and len(held.columns) == 1:
        held = next(held.iter_columns())
    if isinstance(held, nw.Series | nw.DataFrame):
        return held.to_numpy()
    return X.to_numpy(zero_copy_only=False) if hasattr(X, "to_pylist") else X


def is_hub_dataset(rows: Any) -> bool:
    """Whether this is a `datasets.Dataset`, or behaves as one: named columns, each with a feature."""
    return all(hasattr(rows, name) for name in ("column_names", "features", "num_rows"))


def hub_table(source: str, rows: Any, rename: Mapping[str, str] | None = None) -> Table:
    """The columns of a `datasets.Dataset`; a column of class numbers gets a second one, `<name>_text`, with the names.

    Args:
        source: What errors call the rows.
        rows: The data set.
        rename: Our name for a column.
    """
    columns: dict[str, Any] = {}
    for name in rows.column_names:
        columns[name] = list(rows[name])
        if names := _class_names(rows.features.get(name)):
            texts = [_named(value, names, f"{source} row {row}: {name!r}") for row, value in enumerate(columns[name])]
            columns[name] = [None if text is None else value for value, text in zip(columns[name], texts, strict=True)]
            columns.setdefault(f"{name}_text", texts)
    columns = {(rename or {}).get(name, name): values for name, values in columns.items()}
    return Table(source, columns, range(len(rows)), is_file=False)


def _with_class_names(source: str, rows: Any) -> Table:
    """Somebody's own data set: classes go by their names, in the column that they are in."""
    table = hub_table(source, rows)
    own: list[str] = list(rows.column_names)
    made = [name for name in own if f"{name}_text" in table.columns and f"{name}_text" not in own]
    kept = {name: table.columns[f"{name}_text" if name in made else name] for name in own}
    return Table(source, kept, table.numbers, is_file=False)


def _frame_table(source: str, rows: Any) -> Table | None:
    # Narwhals refuses repeated names with an error of its own.
    if not isinstance(rows, Mapping) and not _is_lazy(rows):
        names = getattr(rows, "column_names", None) or getattr(rows, "columns", ())
        if isinstance(names, Sequence) or hasattr(names, "tolist"):
            refuse_repeated(source, [str(name) for name in names])
    held = nw.from_native(rows, pass_through=True)
    if isinstance(held, nw.LazyFrame):
        held = _collected(held)
    if not isinstance(held, nw.DataFrame):
        return None
    columns = {str(column.name): column.to_list() for column in held.iter_columns()}
    return Table(source, columns, range(len(held)), is_file=False)


def _is_lazy(rows: Any) -> bool:
    return hasattr(rows, "collect_schema") and not hasattr(rows, "height")


def _collected(frame: Any) -> Any:
    try:
        return frame.collect()
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            f"a lazy frame of {frame.implementation} is collected through {error.name}, which is not installed; "
            f"install it, or pass pandas or polars rows"
        ) from error


def _class_names(feature: Any) -> list[str] | None:
    """The names behind a ClassLabel, or behind a list of them."""
    return getattr(feature, "names", None) or getattr(getattr(feature, "feature", None), "names", None)


def _named(value: Any, names: list[str], place: str) -> Any:
    """The name of a class, or the names of a list; None for an unlabelled row (-1 on the hub)."""
    if value is None or value == -1:
        return None
    for number in value if isinstance(value, list) else [value]:
        if not 0 <= number < len(names):
            raise UnavailableError(f"{place} holds {number}, but there are {len(names)} names")
    return [names[number] for number in value] if isinstance(value, list) else names[value]
