import math
from io import StringIO

import pytest
from rich.console import Console

from lexical_sae.report.interval_text import number_text, share_text
from lexical_sae.report.tables import FigureTable, TablesPage, tables_html, tables_view

HOSTILE = ["<script>alert(1)</script>", "[bold]x[/bold]", "{{7*7}}", "\x1b[31m"]
PAGE = TablesPage(
    HOSTILE[0], [HOSTILE[1]], [FigureTable(HOSTILE[2], ("name", "value"), [(HOSTILE[0], "1.0")], HOSTILE[3])], ["odd"]
)


def test_nothing_from_outside_is_acted_on():
    page = tables_html(PAGE)
    assert "<script" not in page
    assert "{{7*7}}" in page
    assert "\x1b" not in page
    console = Console(width=100, record=True, file=StringIO())
    console.print(tables_view(PAGE))
    shown = console.export_text()
    assert "[bold]x[/bold]" in shown
    assert "\x1b" not in shown


def test_every_cell_stands_on_the_page():
    page = tables_html(PAGE)
    for part in ("name", "value", "1.0", "odd"):
        assert part in page


@pytest.mark.parametrize(
    ("interval", "share", "number"),
    [
        ((0.5, 0.4, 0.6), "50.0% (40.0% to 60.0%)", "0.50 (0.40 to 0.60)"),
        ((0.5, None, None), "50.0%", "0.50"),
        ((math.nan, None, None), "–", "–"),
        ((None, None, None), "–", "–"),
    ],
    ids=["interval", "mean", "not a number", "nothing"],
)
def test_intervals_are_written_as_people_read_them(interval, share, number):
    given: dict[str, float | None] = dict(zip(("mean", "low", "high"), interval, strict=True))
    assert (share_text(given), number_text(given)) == (share, number)


@pytest.mark.parametrize("width", [40, 200])
def test_a_table_that_is_too_wide_is_shown_row_by_row(width):
    columns = ("name", *(f"a long column {i}" for i in range(6)))
    rows = [("first row", *(f"value {i}" for i in range(6))), ("second row", *(f"other {i}" for i in range(6)))]
    console = Console(width=width, record=True, file=StringIO())
    console.print(tables_view(TablesPage("wide", (), [FigureTable("Figures", columns, rows)])))
    lines = console.export_text().splitlines()
    assert any("a long column 5" in line for line in lines)
    assert any("other 3" in line for line in lines)
    are_together = any("value 0" in line and "value 5" in line for line in lines)
    assert are_together == (width == 200)
