"""Tables of an experiment, for the terminal and as one HTML page that stands alone. Plain data in, nothing computed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from splade.report.page import html_document
from splade.report.printable import shown


@dataclass(frozen=True)
class FigureTable:
    """Figures in rows and columns; the first column names the row."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    """What the figures mean, in a sentence or two."""


@dataclass(frozen=True)
class TablesPage:
    """What an experiment shows."""

    title: str
    summary: Sequence[str]
    """What was found, in sentences."""
    tables: Sequence[FigureTable]
    limits: Sequence[str] = ()
    """What the figures do not say."""


def tables_view(page: TablesPage) -> Group:
    """The page in the terminal."""
    parts: list[RenderableType] = [Text(shown(line)) for line in page.summary]
    for table in page.tables:
        parts.append(_FittingTable(table))
        if table.note:
            parts.append(Text(shown(table.note), style="dim"))
    return Group(*parts, *(Text(shown(line), style="dim") for line in page.limits))


@dataclass(frozen=True)
class _FittingTable:
    """A table in the terminal; one that is too wide for it is shown row by row, a line per column."""

    table: FigureTable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        table = self.table
        title = Text(shown(table.title), style="italic")
        across = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
        for place, column in enumerate(table.columns):
            across.add_column(Text(shown(column)), justify="right" if place else "left")
        for row in table.rows:
            across.add_row(*(Text(shown(cell)) for cell in row))
        # Of a console that is as wide as the table likes: a narrow one is never told that it is too narrow.
        wanted = Measurement.get(console, options.update_width(10_000), across).maximum
        if wanted <= options.max_width or len(table.columns) <= 2:
            yield across
            return
        yield title
        for name, *cells in table.rows:
            down = Table(box=None, padding=(0, 2, 0, 2), show_header=False)
            for column, cell in zip(table.columns[1:], cells, strict=True):
                down.add_row(Text(shown(column), style="dim"), Text(shown(cell)))
            yield Text(shown(name), style="bold")
            yield down


def tables_html(page: TablesPage) -> str:
    """The page as one HTML document: no script, nothing from elsewhere, every string escaped."""
    return html_document("tables.html.j2", page.title, page=page)
