"""Editing a model by its table of weights: only cells that differ from the model are changed.

1. A row is compared with what `model_table` writes for its word. Equal cells change nothing, so an unchanged table
   gives the same model, bitwise.
2. A changed weight is set as written. Classes left unchanged share the opposite change, because rows are
   class-centred: with two classes the other weight is the negative.
3. A suppressed row suppresses the word with its forms, as `forbid` in a lexicon does.
4. Unseen words get a dimension; words missing from the table stay as they are.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from lexical_sae.inference.labels import label_index, labels_of
from lexical_sae.intervene.lexicon import (
    LEXICON_FILE,
    Lexicon,
    attached_lexicon,
    refuse_conflicts,
    require_other_folder,
)
from lexical_sae.intervene.word_table import (
    WordRow,
    WordTable,
    carried_along,
    centered_weights,
    is_word,
    load_word_table,
    written_weights,
)
from lexical_sae.intervene.words import FoundWord, find_words, opened_to_words, same_word, suppressed_mask
from lexical_sae.models.lexical_sae import CLASSIFY, LexicalSAE
from lexical_sae.models.persistence import from_pretrained, save_pretrained
from lexical_sae.models.word_views import document_table, multi_piece_words, with_rows
from lexical_sae.utils.errors import SettingsError


@dataclass(frozen=True)
class WeightChange:
    """A word whose weights changed, class-centred."""

    word: str
    before: tuple[float, ...]
    after: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class TableEdit:
    """A model edited by a table, and the changes."""

    model: LexicalSAE
    """A view that shares all other weights with the original, which stays unchanged."""
    changed: tuple[WeightChange, ...]
    suppressed: tuple[FoundWord, ...]
    newly_closed: tuple[int, ...]
    """Dimensions of suppressed words that had a weight before."""
    added: tuple[str, ...]
    """Words that got a dimension."""

    def __bool__(self) -> bool:
        return bool(self.changed or self.newly_closed)


def edited_by_table(model: LexicalSAE, table: WordTable) -> TableEdit:
    """The model with the weights of a table; words missing from the table keep theirs.

    Args:
        model: A model with literal words; it is not changed.
        table: The table, with the model's labels.

    Returns:
        The edited model, a view, and what changed.

    Raises:
        ValueError: All rows that cannot be applied, in one message.

    Example: `edited_by_table(model, load_word_table("words.csv", model.labels["classify"])).model`
    """
    document_table(model)
    labels_of(model, "a table of words to edit")
    if table.labels != model.labels[CLASSIFY]:
        raise SettingsError(
            f"the table has weights for {', '.join(table.labels)}, the model decides between "
            f"{', '.join(model.labels[CLASSIFY])}; write the table of this model"
        )
    opened, places, problems = _located(model, table.rows)
    changes, forbidden = _requested(opened, places, problems)
    opened = opened_to_words(opened, list(forbidden))
    suppressed = find_words(opened, list(forbidden)) if forbidden and not problems else ()
    problems += _conflicts(changes, suppressed, forbidden)
    if problems:
        raise SettingsError("\n".join(problems))
    return _edited(model, opened, changes, suppressed)


def table_with(model: LexicalSAE, weights: Mapping[str, Mapping[str, float]]) -> WordTable:
    """A table of these words, with new weights for the classes that are given and those of the model for the others.

    Args:
        model: A model with literal words.
        weights: New class-centred weights, by word and label.

    Returns:
        The table, for `edited_by_table`.

    Example: `table_with(model, {"film": {"positive": 1.0}}).rows[0].weights` -> (0.1716, 1.0)
    """
    document_table(model)
    labels_of(model, "a table of words to edit")
    labels = model.labels[CLASSIFY]
    for word, new in weights.items():
        for label in new:
            label_index(labels, label, f"the weight of {word!r}: label")
    blank = [WordRow(word, None, place="set") for word in weights]
    opened, places, problems = _located(model, blank)
    if problems:
        raise SettingsError("\n".join(problems))
    written = written_weights(opened)
    rows = {
        row.word: [weights[row.word].get(label, own) for label, own in zip(labels, written[i].tolist(), strict=True)]
        for i, row in places.items()
    }
    return WordTable(labels, tuple(WordRow(word, tuple(row), place="set") for word, row in rows.items()))


def edit_saved_by_table(folder: str | Path, table: str | Path, out: str | Path) -> TableEdit:
    """The edit in a saved copy of a model; suppressed words are added to the lexicon of earlier edits.

    Args:
        folder: The model to edit; it is not changed.
        table: The CSV file.
        out: Folder for the copy.

    Returns:
        The edited model and what changed.

    Example: `edit_saved_by_table("results/quickstart/model", "words.csv", "results/edited")`
    """
    require_other_folder(folder, out)
    model, earlier = from_pretrained(folder), attached_lexicon(folder) or Lexicon()
    done = edited_by_table(model, load_word_table(table, model.labels.get(CLASSIFY, ())))
    if not done:
        raise SettingsError(f"{table} has the weights that {folder} already has; change a weight, or suppress a word")
    lexicon = earlier.joined(Lexicon(forbid=tuple(word.word for word in done.suppressed)))
    if lexicon.forbid:
        refuse_conflicts(model, lexicon)
    attached = {LEXICON_FILE: lexicon.to_yaml()} if lexicon != Lexicon() else {}
    save_pretrained(done.model, out, attached={**attached, **carried_along(folder)})
    return done


@dataclass(frozen=True)
class _Change:
    row: WordRow
    before: Float[Tensor, " C"]
    after: Float[Tensor, " C"]


Changes = dict[int, _Change]
"""Requested changes, by dimension."""


class _Finder:
    """Finds the dimension of a written word: by name, otherwise by spelling."""

    def __init__(self, model: LexicalSAE) -> None:
        self.vocabulary, self.spelled = model.dimensions.vocabulary, model.dimensions.spelled
        self.names = {model.dimensions[i].name: i for i in is_word(model).nonzero().flatten().tolist()}

    def find(self, word: str) -> int | None:
        """The dimension; None for an unseen word, and for anything but one word."""
        if word in self.names:
            return self.names[word]
        (ways,) = self.vocabulary.spellings([word])
        found = {way[0] for way in ways if len(way) == 1 and self.vocabulary.word_mask[way[0]]}
        found |= {self.spelled[way] for way in ways if way in self.spelled}
        return found.pop() if len(found) == 1 else None


def _located(model: LexicalSAE, rows: Sequence[WordRow]) -> tuple[LexicalSAE, dict[int, WordRow], list[str]]:
    """A view with a dimension for every word, the rows by dimension, and the problems of other rows."""
    finder, vocabulary = _Finder(model), model.dimensions.vocabulary
    unknown = [row.word for row in rows if finder.find(row.word) is None]
    spellings = [way for ways in vocabulary.spellings(unknown) for way in ways if vocabulary.is_cut(way)]
    opened = model.opened_to(spellings)
    finder = _Finder(opened) if unknown else finder
    places: dict[int, WordRow] = {}
    problems: list[str] = []
    for row in rows:
        dimension = finder.find(row.word)
        if dimension is None:
            parts = " + ".join(vocabulary.find(row.word).pieces) or "nothing"
            problems.append(f"{row.place}: {row.word!r} is not one word: the tokenizer reads {parts}")
        elif (first := places.setdefault(dimension, row)) is not row:
            name = opened.dimensions[dimension].name
            problems.append(f"{row.place}: {row.word!r} and {first.word!r} ({first.place}) are both {name!r}; list one")
    return opened, places, problems


def _requested(
    model: LexicalSAE, places: Mapping[int, WordRow], problems: list[str]
) -> tuple[Changes, dict[str, WordRow]]:
    """The rows to change, and the words to suppress that are not yet suppressed."""
    written, exact, suppressed = written_weights(model), centered_weights(model), suppressed_mask(model)
    changes: Changes = {}
    forbidden: dict[str | int, WordRow] = {}
    for dimension, row in places.items():
        is_suppressed = bool(suppressed[dimension])
        if row.suppress or row.weights is None:
            if not is_suppressed:
                # Two forms that differ in case alone are one word of a lexicon.
                forbidden.setdefault(same_word(row.word), row)
        elif is_suppressed:
            problems.append(
                f"{row.place}: {row.word!r} is suppressed in this model, and a table does not bring it back; edit the "
                f"previous model, or mark the word as suppressed"
            )
        elif row.weights != tuple(written[dimension].tolist()):
            after = _centered(exact[dimension], written[dimension], torch.tensor(row.weights, dtype=exact.dtype))
            changes[dimension] = _Change(row, exact[dimension], after)
    return changes, {row.word: row for row in forbidden.values()}


def _centered(exact: Float[Tensor, " C"], written: Float[Tensor, " C"], given: Float[Tensor, " C"]) -> Tensor:
    """The given weights, centred by moving the unchanged ones, or all if none is unchanged.

    Example: (-0.4, 0.4) with the second set to 1 -> (-1, 1)
    """
    is_same = given == written
    row = torch.where(is_same, exact, given)
    moved = is_same if bool(is_same.any()) else torch.ones_like(is_same)
    return row - moved * (row.sum() / moved.sum())


def _conflicts(changes: Changes, suppressed: Sequence[FoundWord], forbidden: Mapping[str, WordRow]) -> Iterator[str]:
    for word in suppressed:
        for change in (changes[i] for i in word.dimensions if i in changes):
            yield (
                f"{change.row.place}: {change.row.word!r} has a new weight, but is suppressed with {word.word!r} "
                f"({forbidden[word.word].place}), which includes all its forms; undo one of the two"
            )


@torch.no_grad()
def _edited(model: LexicalSAE, opened: LexicalSAE, changes: Changes, suppressed: tuple[FoundWord, ...]) -> TableEdit:
    table, closed = document_table(opened).word_vectors, opened.gate.closed.clone()
    ids = torch.tensor(list(changes), dtype=torch.long, device=table.device)
    after = torch.stack([change.after for change in changes.values()]) if changes else table[ids]
    rows = after.to(table)
    closed[ids] = (rows == 0).all(-1)
    away = [i for word in suppressed for i in word.dimensions]
    newly = sorted({i for i in away if not closed[i]})
    closed[away] = True
    return TableEdit(
        with_rows(opened, ids, rows, closed),
        tuple(
            WeightChange(opened.dimensions[i].name, tuple(change.before.tolist()), tuple(change.after.tolist()))
            for i, change in changes.items()
        ),
        suppressed,
        tuple(newly),
        multi_piece_words(opened)[len(multi_piece_words(model)) :],
    )
