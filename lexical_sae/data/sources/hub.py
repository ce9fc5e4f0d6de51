"""Data sets from the Hugging Face hub, columns verified; the only file that imports `datasets`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lexical_sae.data.sources.layouts import Tables
from lexical_sae.data.tables.frames import hub_table
from lexical_sae.data.tables.table import Table
from lexical_sae.utils.errors import MissingPackageError, UnavailableError


@dataclass(frozen=True)
class HubSource:
    """Where a set lives on the hub, and what it must look like there."""

    ids: tuple[tuple[str, str | None], ...]
    """(repository, configuration), the first that loads is taken."""
    columns: tuple[str, ...]
    """Columns that must be there; other copies of a set are refused by their columns."""
    train: str = "train"
    validation: str | None = None
    test: str | None = "test"
    rename: Mapping[str, str] = field(default_factory=dict)
    """Our name for a column of the hub."""


def load_from_hub(source: HubSource) -> tuple[Tables, str]:
    """The tables of the first id that loads and has the columns, and that id; the error lists what each one lacks."""
    try:
        import datasets  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingPackageError(
            "the hub needs the `datasets` package; install it with: pip install -e '.[hub]'"
        ) from error
    failures = []
    for repository, configuration in source.ids:
        label = f"{repository}:{configuration}" if configuration else repository
        try:
            return _load_splits(datasets, source, repository, configuration), label
        except (OSError, RuntimeError, ValueError) as error:
            failures.append(f"{label}: {error}")
            if isinstance(error, ConnectionError):
                break  # No network: the next id would only wait through its retries for the same answer.
    raise UnavailableError("; ".join(failures))


def _load_splits(datasets: Any, source: HubSource, repository: str, configuration: str | None) -> Tables:
    tables: list[Table | None] = []
    for split in (source.train, source.validation, source.test):
        if split is None:
            tables.append(None)
            continue
        # No `trust_remote_code`: a data set that needs to run its own code is refused by `datasets` >= 4.
        loaded = datasets.load_dataset(repository, configuration, split=split)
        tables.append(_as_table(loaded, source, f"{repository}[{split}]"))
    assert tables[0] is not None
    return Tables(tables[0], tables[1], tables[2])


def _as_table(loaded: Any, source: HubSource, place: str) -> Table:
    seen = list(loaded.column_names)
    if missing := [name for name in source.columns if name not in seen]:
        raise UnavailableError(f"{place} lacks the columns {missing}; columns seen: {seen}")
    return hub_table(place, loaded, source.rename)
