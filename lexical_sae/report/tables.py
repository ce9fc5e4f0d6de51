"""The table of every view: cells of text, shown in the terminal and, by `figure_tables.html.j2`, on a page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from lexical_sae.report.page import html_document
from lexical_sae.report.printable import shown

FIGURE = ("", "figure")
"""Columns of a table that is a list of named figures."""
LOOKS = {"plain": "", "strong": "bold", "quiet": "dim", "for": "green", "against": "red", "notice": "yellow"}
"""What a cell means and how the terminal shows it; pages use the same names as CSS classes."""


class Cell(NamedTuple):
    """Text with what it means."""

    text: str
    look: str = "plain"

    def __str__(self) -> str:
        """What a page shows."""
        return self.text


AnyCell = str | Cell


@dataclass(frozen=True)
class FigureTable:
    """Figures in rows and columns; the first column names the row."""

    title: str
    columns: Sequence[str]
    """Names of the columns; a table whose columns have no names has no head."""
    rows: Sequence[Sequence[AnyCell]]
    note: str = ""
    """What the figures mean, in a sentence or two."""
    narrow: tuple[int, int] | None = None
    """Terminal width below which only the first columns are shown: `(width, columns)`."""
    left: int = 1
    """Columns from the left that hold words, not figures."""

    def fitting(self, width: int) -> "FigureTable":
        """The columns to show in a terminal of that width."""
        if self.narrow is None or width >= self.narrow[0]:
            return self
        kept = self.narrow[1]
        return FigureTable(
            self.title, self.columns[:kept], [row[:kept] for row in self.rows], self.note, None, self.left
        )


@dataclass(frozen=True)
class TablesPage:
    """What an experiment shows."""

    title: str
    summary: Sequence[str]
    """What was found, in sentences."""
    tables: Sequence[FigureTable]
    limits: Sequence[str] = ()
    """What the figures do not say."""


def figures_list(title: str, rows: Sequence[tuple[str, str, str]]) -> FigureTable:
    """Named figures with a remark each, as a table without a head."""
    cells = [(name, Cell(value, "strong"), Cell(remark, "quiet")) for name, value, remark in rows]
    return FigureTable(title, ("", "", ""), cells, left=3)


def tables_view(page: TablesPage) -> Group:
    """The page in the terminal."""
    parts: list[RenderableType] = [Text(shown(line)) for line in page.summary]
    parts += [table_view(table) for table in page.tables]
    return Group(*parts, *(Text(shown(line), style="dim") for line in page.limits))


def table_view(table: FigureTable) -> Group:
    """One table with its note in the terminal."""
    return Group(_FittingTable(table), *([Text(shown(table.note), style="dim")] if table.note else []))


@dataclass(frozen=True)
class _FittingTable:
    """A table in the terminal; one that is too wide for it is shown row by row, a line per column."""

    table: FigureTable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        table = self.table.fitting(options.max_width)
        has_head = any(table.columns)
        title = Text(shown(table.title), style="italic") if table.title else None
        across = Table(title=title, title_justify="left", show_header=has_head, box=None, padding=(0, 2, 0, 0))
        for place, column in enumerate(table.columns):
            is_figure = place >= table.left
            across.add_column(Text(shown(column)), justify="right" if is_figure else "left", overflow="fold")
        for row in table.rows:
            across.add_row(*map(_cell_text, row))
        # Of a console that is as wide as the table likes: a narrow one does not know that it is too narrow.
        wanted = Measurement.get(console, options.update_width(10_000), across).maximum
        # A table that says which columns to leave out folds its words instead.
        keeps_shape = not has_head or self.table.narrow is not None
        if keeps_shape or wanted <= options.max_width or len(table.columns) <= 2:
            yield across
            return
        if title is not None:
            yield title
        for name, *cells in table.rows:
            down = Table(box=None, padding=(0, 2, 0, 2), show_header=False)
            for column, cell in zip(table.columns[1:], cells, strict=False):
                down.add_row(Text(shown(column), style="dim"), _cell_text(cell))
            yield Text(shown(name if isinstance(name, str) else name.text), style="bold")
            yield down


def _cell_text(cell: AnyCell) -> Text:
    text, look = cell if isinstance(cell, Cell) else (cell, "plain")
    return Text(shown(text), style=LOOKS[look])


def tables_html(page: TablesPage) -> str:
    """The page as one HTML document: no script, nothing from elsewhere, every string escaped."""
    return html_document("tables.html.j2", page.title, page=page)
