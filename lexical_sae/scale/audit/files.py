"""What an audit leaves for other programs: CSVs, and gauges for Prometheus."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy import ndarray
from pyarrow import csv

from lexical_sae.scale.audit.audit import Audit
from lexical_sae.scale.audit.words import Columns
from lexical_sae.utils.files import publish_file, write_text

DIGITS = 6
"""Of the shares and contributions in CSVs."""
MOST_GAUGES = 50
"""Changed words that become gauges: every name is a series of its own."""
NAMES = {"prediction": "class", "grp": "group", "is_found": "found"}
"""Columns whose name is another one outside."""
_FORMULA = re.compile(r"^[=+\-@\t\r]")


def write_csvs(found: Audit, folder: Path) -> list[Path]:
    """Write every table of the audit."""
    tables: dict[str, Columns] = {
        "classes": _without(found.decisions, "own"),
        "words": found.words,
        "unusual": _without(found.unusual, "own"),
    }
    for name, cut in {"groups": found.groups, "periods": found.periods}.items():
        if cut is not None:
            tables |= {f"{name}": cut.decisions, f"{name}_unusual": cut.unusual, f"{name}_words": cut.words}
    if found.drift is not None:
        tables |= {"drift_shares": found.drift.shares, "drift_words": found.drift.words}
    if found.suspects is not None:
        tables["labels"] = _suspect_columns(found)
    return [_write(folder / f"{name}.csv", columns) for name, columns in tables.items()]


def write_gauges(found: Audit, path: Path) -> Path:
    """Write the figures to watch in Prometheus' text format, as node_exporter's textfile collector reads it."""
    return write_text(path, "".join(f"{line}\n" for line in _gauges(found)))


def _without(columns: Columns, name: str) -> Columns:
    return {key: values for key, values in columns.items() if key != name}


def _suspect_columns(found: Audit) -> Columns:
    assert found.suspects is not None
    rows = found.suspects.rows
    plain = ("row_id", "source", "source_row", "label", "prediction", "probability_of_label", "probability")
    columns: dict[str, Any] = {name: [getattr(row, name) for row in rows] for name in plain}
    words = [" ".join(f"{word} {contribution:+.2f}" for word, contribution in row.words) for row in rows]
    # Not "class", as elsewhere: it stands beside the label.
    return {**columns, "prediction_": columns.pop("prediction"), "words": words}


def _write(path: Path, columns: Columns) -> Path:
    names = [NAMES.get(name, name.rstrip("_")) for name in columns]
    made = pa.Table.from_arrays([_cells(values) for values in columns.values()], names=names)
    path.parent.mkdir(parents=True, exist_ok=True)
    with publish_file(path, path.parent) as work:
        csv.write_csv(made, work)
    return path


def _cells(values: Any) -> pa.Array:
    """What stands in a column; words that a spreadsheet would run as a formula have an apostrophe before them."""
    if isinstance(values, ndarray) and values.dtype.kind == "f":
        return pa.array(_rounded(values), from_pandas=True)
    if isinstance(values, ndarray) and values.dtype.kind == "M":
        return pa.array(values.astype("datetime64[D]"))
    made = pa.array(values)
    if not pa.types.is_string(made.type):
        return made
    return pa.array([f"'{cell}" if cell and _FORMULA.match(cell) else cell for cell in made.to_pylist()], pa.string())


def _rounded(values: ndarray) -> ndarray:
    """With so many digits after the first that is not zero, for p-values too."""
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.floor(np.log10(np.abs(values)))
        scale = 10.0 ** np.clip(DIGITS - 1 - np.where(np.isfinite(size), size, 0), -300, 300)
    return np.round(values * scale) / scale


def _gauges(found: Audit) -> Iterator[str]:
    shares = zip(found.decisions["prediction"], found.decisions["share"], strict=True)
    warnings = zip(found.unusual["kind"], found.unusual["share"], strict=True)
    yield from _gauge("texts", "Texts that were audited.", [({}, found.rows)])
    yield from _gauge("class_share", "Share of texts decided for a class.", [({"class": c}, s) for c, s in shares])
    yield from _gauge("unusual_share", "Share of texts with a warning.", [({"kind": k}, s) for k, s in warnings])
    if found.suspects is not None:
        yield from _gauge("labelled", "Texts with a label that the model knows.", [({}, found.suspects.known)])
        yield from _gauge("suspected_labels", "Labels that are probably wrong.", [({}, found.suspects.suspected)])
    if found.drift is None:
        return
    yield from _gauge("drift_texts_before", "Texts that these are compared with.", [({}, found.drift.before)])
    yield from _gauge("drift_tests", "Tests for a change.", [({}, found.drift.tests)])
    yield from _gauge("drift_found", "Classes, warnings and words that changed.", [({}, found.drift.found)])
    words = found.drift.words
    changed = [i for i in range(len(words["word"])) if words["is_found"][i]][:MOST_GAUGES]
    of_words = [({"class": words["prediction"][i], "word": words["word"][i]}, i) for i in changed]
    told = "Change of a word's contribution per text of the class; the words that changed most."
    yield from _gauge("word_change", told, [(names, words["change"][i]) for names, i in of_words])


def _gauge(name: str, told: str, values: list[tuple[Mapping[str, str], float]]) -> Iterator[str]:
    full = f"lexical_sae_audit_{name}"
    yield f"# HELP {full} {told}"
    yield f"# TYPE {full} gauge"
    for names, value in values:
        inside = ",".join(f'{key}="{_escaped(label)}"' for key, label in names.items())
        yield f"{full}{f'{{{inside}}}' if inside else ''} {value:.{DIGITS}g}"


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
