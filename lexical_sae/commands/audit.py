"""Questions about a scored table: the command `audit`."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from lexical_sae.commands.console import console
from lexical_sae.commands.options import print_notes, progress, require_choice
from lexical_sae.utils.errors import MissingPackageError

EVERY = ("day", "week", "month", "quarter", "year")
FORMATS = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]
PAGE, GAUGES = "audit.html", "audit.prom"


def audit(
    scored: Annotated[Path, typer.Argument(help="Folder that `score` wrote.")],
    by: Annotated[str | None, typer.Option(help="Kept column of groups, as in region.")] = None,
    time: Annotated[str | None, typer.Option(help="Kept column of the time; inferred where one is a date.")] = None,
    every: Annotated[str, typer.Option(help="Length of a period: day, week, month, quarter or year.")] = "month",
    since: Annotated[
        datetime | None, typer.Option(formats=FORMATS, help="Audit texts since then, beside those before.")
    ] = None,
    until: Annotated[datetime | None, typer.Option(formats=FORMATS, help="Audit texts before then.")] = None,
    reference_since: Annotated[
        datetime | None, typer.Option(formats=FORMATS, help="Begin of the texts to compare with.")
    ] = None,
    against: Annotated[Path | None, typer.Option(help="Compare with another scored folder instead.")] = None,
    level: Annotated[float, typer.Option(help="False discovery rate of the changes named.")] = 0.05,
    out: Annotated[Path | None, typer.Option(help="Folder for the page and CSVs; by default SCORED/audit.")] = None,
    gauges: Annotated[Path | None, typer.Option(help="File for Prometheus; by default audit.prom beside them.")] = None,
) -> None:
    """Ask a scored table: words that drive each class, by group and over time, drift, unusual texts, wrong labels.

    Example: lexical-sae audit scored --by region --since 2026-07-01

    Writes a page, CSVs of all tables, and gauges for Prometheus.
    """
    require_choice("--every", every, EVERY)
    try:
        from lexical_sae.scale.audit import audit as audits
        from lexical_sae.scale.audit import files, page
        from lexical_sae.scale.audit.settings import Asked
    except ModuleNotFoundError as error:
        raise MissingPackageError(f"auditing needs {error.name}: pip install 'lexical-sae[scale]'") from error
    from lexical_sae.report.sections import sections_html
    from lexical_sae.report.tables import table_view
    from lexical_sae.utils.files import write_text

    asked = Asked(
        by=by,
        time=time,
        every=every,  # pyright: ignore[reportArgumentType]
        since=since,
        until=until,
        reference_since=reference_since,
        against=None if against is None else str(against),
        level=level,
    )
    with progress() as bars:
        found = audits.audit(scored, asked, bars)
    print_notes(found.notes)
    folder = out or (scored if scored.is_dir() else scored.parent) / "audit"
    written = files.write_csvs(found, folder)
    write_text(folder / PAGE, sections_html(page.audit_page(found)))
    files.write_gauges(found, gauges or folder / GAUGES)
    console.print(page.headline(found), highlight=False)
    for table in page.terminal_tables(found):
        console.print(table_view(table))
    console.print(f"written to {folder}: {PAGE}, {len(written)} CSVs, {gauges or GAUGES}", highlight=False)
