"""The texts of a file that somebody names on the command line; labels are not needed."""

from pathlib import Path


def read_texts(file: Path, column: str | None) -> list[str]:
    """The texts of a CSV, TSV or JSONL file, in its order; a row without a text is refused with its line.

    Without a `column` it is the only one, or the one with the most usual name.
    """
    from splade.data.cells import text_problem
    from splade.data.files import as_table

    table = as_table(file, "--file")
    name = column or _guessed_column(list(table.columns), str(file))
    cells = table.column(name)
    for row, cell in enumerate(cells):
        if problem := text_problem(cell):
            raise ValueError(f"{table.place(row)}: {problem} in column {name!r}; fill it in or take the row out")
    return [str(cell) for cell in cells]


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
