"""A page of sections, each with its charts and tables: no script, nothing from elsewhere, every string escaped."""

from collections.abc import Sequence
from dataclasses import dataclass

from lexical_sae.report.charts.svg import Picture
from lexical_sae.report.page import html_document
from lexical_sae.report.tables import FigureTable


@dataclass(frozen=True)
class Section:
    """One question and its answer."""

    heading: str
    note: str = ""
    charts: Sequence[Picture] = ()
    tables: Sequence[FigureTable] = ()
    """Tables that are read one after the other."""
    pairs: Sequence[tuple[str, FigureTable, FigureTable]] = ()
    """Tables that stand beside each other, with what they share as their title."""


@dataclass(frozen=True)
class SectionsPage:
    """What a page shows."""

    title: str
    summary: Sequence[str]
    tiles: Sequence[tuple[str, str, str]]
    """Figures to see first: name, value and remark."""
    sections: Sequence[Section]
    limits: Sequence[str] = ()
    """What the figures do not say."""


def sections_html(page: SectionsPage) -> str:
    """The page as one HTML document; the same data always gives the same document."""
    return html_document("sections.html.j2", page.title, page=page)
