"""A model with literal words as a table: a row per word, its weight for each class, and whether it is suppressed.

A weight is the word's contribution to the class in a text of sixteen tokens without context, in logits, class-centred.
Words without weight are not listed. The file is CSV, for spreadsheets:

    word,weight:negative,weight:positive,texts,suppress
    worst,1.2034,-1.2034,57,
    '1984,-0.3111,0.3111,4,

Cells that a spreadsheet would read as a formula, a number or a date have an apostrophe before them.
"""

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lexical_sae.data.tables.formats import read_table
from lexical_sae.data.tables.table import Table
from lexical_sae.intervene.words import suppressed_mask
from lexical_sae.models.lexical_sae import CLASSIFY, LexicalSAE
from lexical_sae.models.word_views import document_table
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.files import write_text

WORD, WEIGHT, TEXTS, SUPPRESS = "word", "weight:", "texts", "suppress"
"""Names of the columns; a weight's is followed by the label."""
DECIMALS = 4
"""Spreadsheets save what they display: longer numbers would come back changed."""
FREQUENCIES_FILE = "document_frequencies.json"
"""File in a model's folder with the number of training texts of each word."""
YES, NO = ("true", "yes", "1", "x"), ("false", "no", "0", "")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_CHANGED_BY_SPREADSHEETS = re.compile(r"[=+\-@\t\r]|.*\d|(true|false)$", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class WordRow:
    """A row of the table."""

    word: str
    weights: tuple[float, ...] | None
    """For each class, in the order of the labels; None where the cells are empty, which suppresses the word too."""
    suppress: bool = False
    texts: int | None = None
    """Training texts with the word, if known."""
    place: str = ""
    """File and line, for errors. Example: `words.csv:7`"""


@dataclass(frozen=True)
class WordTable:
    """Words with their weights, the largest first."""

    labels: tuple[str, ...]
    rows: tuple[WordRow, ...]

    def to_csv(self) -> str:
        """The file that `parse_word_table` reads back as this table."""
        file = io.StringIO(newline="")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([WORD, *(WEIGHT + label for label in self.labels), TEXTS, SUPPRESS])
        for row in self.rows:
            weights = [""] * len(self.labels) if row.weights is None else [f"{w:.{DECIMALS}f}" for w in row.weights]
            texts = "" if row.texts is None else row.texts
            writer.writerow([escaped(row.word), *weights, texts, "true" if row.suppress else ""])
        return file.getvalue()


def model_table(model: LexicalSAE, frequencies: Mapping[str, int] | None = None) -> WordTable:
    """Every word of the model that has a weight; `frequencies` are training texts by word (`attached_frequencies`).

    Example: `model_table(model).rows[0]` -> WordRow("worst", (1.2034, -1.2034))
    """
    weights, suppressed = written_weights(model), suppressed_mask(model)
    listed = (is_word(model) & (weights != 0).any(-1)).nonzero().flatten()
    size = weights[listed].abs().amax(-1)
    known = frequencies or {}
    rows = [
        WordRow(name := model.dimensions[i].name, tuple(weights[i].tolist()), bool(suppressed[i]), known.get(name))
        for i in listed[size.argsort(descending=True, stable=True)].tolist()
    ]
    return WordTable(model.labels[CLASSIFY], tuple(rows))


def is_word(model: LexicalSAE) -> Bool[Tensor, " V"]:
    """Dimensions that are written words: pieces and symbols have rows too, but no text activates them."""
    vocabulary = model.dimensions.vocabulary.word_mask
    appended = torch.ones(len(model.dimensions.appended), dtype=torch.bool, device="cpu")
    return torch.cat([vocabulary, appended])


def centered_weights(model: LexicalSAE) -> Float[Tensor, "V C"]:
    """The weights of every dimension as people read them, of classes class-centred; in double precision on the CPU."""
    return model.output.weights(document_table(model).word_vectors.detach().cpu().double())


def written_weights(model: LexicalSAE) -> Float[Tensor, "V C"]:
    """The weights rounded as a table writes them."""
    return centered_weights(model).round(decimals=DECIMALS)


def attached_frequencies(folder: str | Path) -> dict[str, int]:
    """The number of training texts of each word, if the folder of a saved model has it; else empty."""
    path = Path(folder).expanduser() / FREQUENCIES_FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def carried_along(folder: str | Path) -> dict[str, str]:
    """The files beside the weights that an edited copy keeps, by name."""
    path = Path(folder).expanduser() / FREQUENCIES_FILE
    return {FREQUENCIES_FILE: path.read_text(encoding="utf-8")} if path.exists() else {}


def write_word_table(table: WordTable, path: str | Path) -> Path:
    """The path of the new CSV file; an existing one is never overwritten."""
    target = Path(path).expanduser()
    if target.exists():
        raise SettingsError(f"{target} exists already and may hold your edits; choose another name, or delete it first")
    # With a byte-order mark: some spreadsheets read letters with accents wrongly without one.
    return write_text(target, "\ufeff" + table.to_csv())


def load_word_table(path: str | Path, labels: tuple[str, ...]) -> WordTable:
    """The table in a CSV file, for a model with these labels.

    Raises:
        ValueError: What cannot be read, with its lines.
    """
    source = Path(path).expanduser()
    if not source.is_file():
        raise SettingsError(f"there is no table {source}; write one with: lexical-sae lexicon MODEL --table {path}")
    return parse_word_table(read_table(source), labels)


def parse_word_table(table: Table, labels: tuple[str, ...]) -> WordTable:
    """The word table in a table of cells. Other columns are ignored."""
    expected = [WEIGHT + label for label in labels]
    words, *weights = (table.column(name) for name in (WORD, *expected))
    if other := [name for name in table.columns if name.startswith(WEIGHT) and name not in expected]:
        raise SettingsError(f"{table.source} has weights of a class that the model has not: {other[0]!r}")
    nothing = [""] * len(table)
    marks = table.columns.get(SUPPRESS, nothing)
    counts = table.columns.get(TEXTS, nothing)
    rows, problems = [], []
    for i in range(len(table)):
        try:
            cells = [str(column[i]) for column in weights]
            rows.append(_row(table.place(i), str(words[i]), cells, str(marks[i]), str(counts[i])))
        except ValueError as error:
            problems.append(f"{table.place(i)}: {error}")
    problems += _given_twice(rows)
    if problems:
        raise SettingsError("\n".join(problems))
    return WordTable(labels, tuple(rows))


def escaped(word: str) -> str:
    """The word as a cell that a spreadsheet does not change. Example: `=1+1 -> '=1+1`, `film -> film`"""
    return "'" + word if _CHANGED_BY_SPREADSHEETS.match(word.lstrip("'")) else word


def unescaped(cell: str) -> str:
    """The word in a cell; the inverse of `escaped`, also for words typed without the apostrophe."""
    is_escaped = cell.startswith("'") and _CHANGED_BY_SPREADSHEETS.match(cell.lstrip("'"))
    return cell[1:] if is_escaped else cell


def _row(place: str, word: str, weights: list[str], mark: str, count: str) -> WordRow:
    word = unescaped(word).strip()
    if not word:
        raise SettingsError("the word is empty; delete the line")
    mark = mark.strip().casefold()
    if mark not in (*YES, *NO):
        raise SettingsError(f"{SUPPRESS} is {mark!r}; write true, or leave the cell empty")
    empty = [not cell.strip() for cell in weights]
    if any(empty) and not all(empty):
        raise SettingsError(f"{word!r} has a weight for some classes only; give all, or none to suppress it")
    given = None if all(empty) else tuple(map(_number, weights))
    return WordRow(word, given, mark in YES, int(count) if count.strip().isdigit() else None, place)


def _number(cell: str) -> float:
    """A weight, also with a decimal comma."""
    written = cell.strip().replace(",", ".")
    if not _NUMBER.fullmatch(written) or not math.isfinite(float(written)):
        raise SettingsError(f"{cell!r} is not a weight; write a number such as -0.25")
    return float(written)


def _given_twice(rows: list[WordRow]) -> Iterator[str]:
    first: dict[str, WordRow] = {}
    for row in rows:
        if row.word in first:
            yield f"{row.place}: {row.word!r} is listed already at {first[row.word].place}; list it once"
        first.setdefault(row.word, row)
