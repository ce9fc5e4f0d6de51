"""The texts of a file that somebody names on the command line; labels are not needed."""

from pathlib import Path
from typing import NamedTuple


class GivenTexts(NamedTuple):
    """The texts of a file, and what is to be said of them."""

    texts: list[str]
    notes: tuple[str, ...]


def read_texts(file: Path, column: str | None, *, skip_bad_rows: bool = False) -> GivenTexts:
    """The texts of a CSV, TSV or JSONL file, in its order; rows without a text are refused with their lines.

    Without a `column` it is the only one, or the one with the most usual name. With `skip_bad_rows` rows without a text
    are left out, and counted in a note.
    """
    from splade.data.cells import text_problem
    from splade.data.files import as_table
    from splade.data.table import list_places

    table = as_table(file, "--file")
    name = column or _guessed_column(list(table.columns), str(file))
    cells = table.column(name)
    problems = {row: problem for row, cell in enumerate(cells) if (problem := text_problem(cell))}
    bad = [f"{table.place(row)} ({problem})" for row, problem in problems.items()]
    if bad and not skip_bad_rows:
        raise ValueError(
            f"rows without a text in column {name!r}: {list_places(bad)}; mend them, or leave them out with "
            "--skip-bad-rows"
        )
    texts = [str(cell) for row, cell in enumerate(cells) if row not in problems]
    if not texts:
        raise ValueError(f"{file} has no row with a text in column {name!r}")
    notes = (f"left out {len(bad)} of {len(cells)} rows, without a text: {list_places(bad)}",) if bad else ()
    return GivenTexts(texts, notes)


def _guessed_column(columns: list[str], file: str) -> str:
    from splade.data.rows import TEXT_NAMES

    by_name = {name.casefold(): name for name in reversed(columns)}
    usual = [by_name[name] for name in TEXT_NAMES if name in by_name]
    found = columns if len(columns) == 1 else usual
    if not found:
        raise ValueError(
            f"{file}: which column holds the texts? Name it with --text-column. Columns seen: {', '.join(columns)}"
        )
    return found[0]
