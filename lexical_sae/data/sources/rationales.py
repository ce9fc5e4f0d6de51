"""Texts in which people marked the reason for the label: ERASER's movie reviews and HateXplain.

They are found like every named set: a folder that is given, or the one of that name inside `$LEXICAL_SAE_DATA`. Only
test rows are read. Marks are kept as characters of the text, whatever the set counts in.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lexical_sae.data.loader import open_tables
from lexical_sae.data.sources.layouts import Tables, find_file
from lexical_sae.data.sources.registry import DatasetSpec
from lexical_sae.data.tables.decoding import read_text
from lexical_sae.data.tables.formats import read_table
from lexical_sae.data.tables.table import Table
from lexical_sae.data.words import Span
from lexical_sae.utils.errors import DataError
from lexical_sae.utils.suggest import did_you_mean

AGREED = 0.5
"""Share of the annotators that must have marked a token."""


@dataclass(frozen=True)
class Rationale:
    """A text, and the characters that people marked."""

    text: str
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class RationaleTexts:
    """Texts with marks; those without a mark are left out."""

    name: str
    rationales: tuple[Rationale, ...]
    notes: tuple[str, ...] = ()
    """What the loader decided or noticed, for people to read."""

    def __len__(self) -> int:
        return len(self.rationales)


def load_rationales(name: str, path: str | Path | None = None) -> RationaleTexts:
    """The test texts of a set of rationales. Example: `load_rationales("eraser_movies").rationales[0].spans`"""
    if name not in RATIONALE_SETS:
        known = ", ".join(RATIONALE_SETS)
        raise DataError(f"there are no rationales {name!r}{did_you_mean(name, RATIONALE_SETS)} Known: {known}")
    tables, origin = open_tables(RATIONALE_SETS[name], path)
    columns: Any = [tables.train.column(column) for column in ("text", "spans")]
    every = [Rationale(*row) for row in zip(*columns, strict=True)]
    marked = tuple(rationale for rationale in every if rationale.spans)
    if not marked:
        raise DataError(f"{tables.train.source}: none of the {len(every)} texts has a rationale; is the file complete?")
    notes = [origin]
    if len(marked) < len(every):
        notes.append(f"left out {len(every) - len(marked)} of {len(every)} texts in which nothing is marked")
    return RationaleTexts(name, marked, tuple(notes))


def open_movies(folder: Path) -> Tables:
    """`test.jsonl` with groups of evidence, and `docs/` with a review each; marks count tokens between blanks."""
    table = read_table(find_file(folder, "test.jsonl"))
    texts, spans = [], []
    for row, (name, groups) in enumerate(zip(table.column("annotation_id"), table.column("evidences"), strict=True)):
        text = read_text(find_file(folder / "docs", str(name)))
        texts.append(text)
        spans.append(_evidence(text, groups, table.place(row)))
    return _only(table, texts, spans)


def _evidence(text: str, groups: Any, place: str) -> tuple[Span, ...]:
    tokens = [match.span() for match in re.finditer(r"\S+", text)]
    found = set()
    try:
        marks = [(int(one["start_token"]), int(one["end_token"])) for group in groups for one in group]
    except (LookupError, TypeError, ValueError) as error:
        raise DataError(
            f"{place}: evidences are {groups!r:.60}, not groups of marks with start_token and end_token; "
            "fetch the file again"
        ) from error
    for first, end in marks:
        if not 0 <= first <= end <= len(tokens):
            raise DataError(
                f"{place}: evidence from token {first} to {end} lies outside the text of {len(tokens)} tokens; "
                "docs/ and test.jsonl are not of one release"
            )
        # Some marks of the published set hold no token.
        if first < end:
            found.add((tokens[first][0], tokens[end - 1][1]))
    return tuple(sorted(found))


def open_hatexplain_marks(folder: Path) -> Tables:
    """`rationales_test.csv`: tokens, and per annotator a 0 or 1 for each; half of the annotators decide."""
    table = read_table(find_file(folder, "rationales_test.csv"))
    texts, spans = [], []
    for row, cells in enumerate(zip(table.column("post_tokens"), table.column("rationales"), strict=True)):
        tokens, marks = (_literal(cell, table.place(row)) for cell in cells)
        if not _is_marked(tokens, marks):
            raise DataError(
                f"{table.place(row)}: a rationale has not one mark, 0 or 1, per token; fetch the file again"
            )
        texts.append(" ".join(tokens))
        spans.append(_agreed(tokens, marks))
    return _only(table, texts, spans)


def _is_marked(tokens: Any, marks: Any) -> bool:
    """Whether these are words, and per annotator a 0 or 1 for each."""
    if not isinstance(tokens, list) or not isinstance(marks, list):
        return False
    sizes = [len(own) if isinstance(own, list) and all(mark in (0, 1) for mark in own) else -1 for own in marks]
    return all(isinstance(token, str) for token in tokens) and all(size == len(tokens) for size in sizes)


def _agreed(tokens: Sequence[str], marks: Sequence[Sequence[int]]) -> tuple[Span, ...]:
    """The tokens that enough annotators marked, as characters of the tokens joined by blanks."""
    found, start = [], 0
    for i, token in enumerate(tokens):
        if marks and sum(own[i] for own in marks) / len(marks) >= AGREED:
            found.append((start, start + len(token)))
        start += len(token) + 1
    return tuple(found)


def _literal(cell: object, place: str) -> Any:
    """The Python value that somebody printed into a cell."""
    try:
        return ast.literal_eval(str(cell))
    except (ValueError, SyntaxError) as error:
        raise DataError(f"{place}: {str(cell)!r:.60} is no printed list; fetch the file again") from error


def _only(table: Table, texts: Sequence[str], spans: Sequence[tuple[Span, ...]]) -> Tables:
    """The test rows as the only table: nothing is trained on rationales."""
    columns = {"text": texts, "spans": spans}
    return Tables(Table(table.source, columns, table.numbers, table.is_file))


RATIONALE_SETS = {
    spec.name: spec
    for spec in (
        DatasetSpec(
            name="eraser_movies",
            files="test.jsonl: annotation_id, evidences; docs/ with a file for each annotation_id",
            open_folder=open_movies,
            licence="no explicit licence; cite the papers",
            reference="Zaidan & Eisner 2008, EMNLP; DeYoung et al. 2020, arXiv:1911.03429",
        ),
        DatasetSpec(
            name="hatexplain",
            files="rationales_test.csv: rationales, post_tokens",
            open_folder=open_hatexplain_marks,
            licence="MIT",
            reference="Mathew et al. 2021, arXiv:2012.10289",
        ),
    )
}
