"""Which columns of a table hold the texts and the labels: as named, or inferred, with a note."""

from collections.abc import Sequence

from lexical_sae.data.tables.table import Table, quoted
from lexical_sae.utils.errors import DataError

TEXT_NAMES = (
    "text",
    "sentence",
    "review",
    "comment_text",
    "comment",
    "tweet",
    "content",
    "body",
    "document",
    "message",
    "utterance",
    "question",
    "post",
    "description",
)
LABEL_NAMES = (
    "label",
    "labels",
    "label_text",
    "class",
    "category",
    "target",
    "sentiment",
    "intent",
    "topic",
    "gold",
    "y",
)
IDENTITY_PREFIX = "identity:"
"""Columns of this prefix hold how much each text mentions an identity, from 0 to 1."""


def choose_columns(table: Table, text: str | None, label: str | None) -> tuple[str, str, tuple[str, ...]]:
    """The text and the label column, as named or as guessed, and a note about every guess."""
    for name in (text, label):
        if name is not None:
            table.column(name)
    guessed_text = text or _by_name(table, TEXT_NAMES, other=label)
    guessed_label = label or _by_name(table, LABEL_NAMES, other=guessed_text)
    candidates = [name for name in table.columns if not name.startswith(IDENTITY_PREFIX)]
    if len(candidates) == 2:
        first, second = candidates
        if guessed_text is None and guessed_label is None:
            guessed_text = max((first, second), key=lambda name: _total_length(table.columns[name]))
        guessed_text = guessed_text or (second if guessed_label == first else first)
        guessed_label = guessed_label or (second if guessed_text == first else first)
    for kind, found in (("text", guessed_text), ("label", guessed_label)):
        if found is None:
            raise DataError(
                f"{table.source}: which column is the {kind}? Name it with {kind}_column=. "
                f"Columns seen: {quoted(table.columns)} (a file without a header line needs one)"
            )
    assert guessed_text is not None
    assert guessed_label is not None
    if guessed_text == guessed_label:
        raise DataError(f"{table.source}: text and label are both column {guessed_text!r}; name two columns")
    is_also_a_label = any(value == guessed_label for value in table.columns[guessed_label] if isinstance(value, str))
    if text is None and label is None and is_also_a_label and " " in guessed_text.strip():
        raise DataError(
            f"{table.source}: the first line looks like data, not like column names: {guessed_label!r:.60} is also a "
            "label further down. Add a header line such as text,label, or name the columns"
        )
    guesses = [("text", text, guessed_text), ("label", label, guessed_label)]
    notes = tuple(f"guessed: {kind} column {found!r:.60}" for kind, named, found in guesses if named is None)
    return guessed_text, guessed_label, notes


def choose_text_column(columns: Sequence[str], source: str) -> str:
    """The column of the texts where none was named: the only one, or the one with the most usual name."""
    by_name = {name.casefold(): name for name in reversed(columns)}
    usual = [by_name[name] for name in TEXT_NAMES if name in by_name]
    found = columns if len(columns) == 1 else usual
    if not found:
        raise DataError(
            f"{source}: which column holds the texts? Name it with --text-column. Columns seen: {', '.join(columns)}"
        )
    return found[0]


def _by_name(table: Table, names: Sequence[str], other: str | None) -> str | None:
    by_folded = {column.casefold(): column for column in reversed(list(table.columns)) if column != other}
    return next((by_folded[name] for name in names if name in by_folded), None)


def _total_length(values: Sequence[object]) -> int:
    return sum(len(str(value)) for value in values)
