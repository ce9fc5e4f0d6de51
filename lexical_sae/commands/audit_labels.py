"""Labels of a file that are probably wrong, and the words that go with them (`audit-labels`)."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from lexical_sae.commands.console import console
from lexical_sae.commands.options import Device, LabelColumn, SkipBadRows, TextColumn, require_file
from lexical_sae.utils.errors import SettingsError

PRINTED = 10
"""Rows and words to print."""


def audit_labels(
    data: Annotated[Path, typer.Argument(help="Your texts with labels: a data file (CSV, JSON, Parquet, Excel, …).")],
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    skip_bad_rows: SkipBadRows = False,
    out: Annotated[Path | None, typer.Option(help="Write all rows to this CSV, to correct and train on.")] = None,
    folds: Annotated[int, typer.Option(help="Models to train, each on all folds but one.", min=2)] = 5,
    level: Annotated[float, typer.Option(help="False discovery rate of the words named.")] = 0.05,
    context: Annotated[
        bool, typer.Option("--context", help="Train models with context: better, and many times slower.")
    ] = False,
    encoder: Annotated[str, typer.Option(help="minilm, granite, mpnet, a folder, or a hub name.")] = "minilm",
    seed: Annotated[int, typer.Option(help="Of the folds and the training.", min=0)] = 0,
    device: Device = "auto",
) -> None:
    """Find labels that are probably wrong, by rows and by words.

    Example: lexical-sae audit-labels reviews.csv --out to_correct.csv

    Every text is predicted by a model that never saw it. A word is named if its texts disagree with their labels more
    often than chance allows. Correct the column `label` of the CSV and train on it.
    """
    require_file(data)
    if out is not None and out.exists():
        raise SettingsError(f"{out} exists already and may hold your corrections; choose another name")
    from lexical_sae.data.files import as_table
    from lexical_sae.data.rows import labelled_rows
    from lexical_sae.data.tables.columns import choose_columns
    from lexical_sae.report.progress import ProgressBars
    from lexical_sae.sklearn.classifier import LexicalClassifier
    from lexical_sae.sklearn.label_issues import find_label_issues

    table = as_table(data)
    text, label, notes = choose_columns(table, text_column, label_column)
    rows = labelled_rows(table, text, label, skip_bad_rows=skip_bad_rows)
    for note in (*notes, *rows.notes):
        console.print(Text(note, style="dim"))
    clf = LexicalClassifier(encoder=encoder, context=context, random_state=seed, device=device)
    with ProgressBars(console) as bars:
        found = find_label_issues(clf, rows.texts, rows.labels, cv=folds, level=level, random_state=seed, on_step=bars)
    console.print(f"{len(found.doubtful)} of {len(found.rows)} labels disagree with a model that never saw their text")
    words = Table("word", "texts", "disagree", "by chance", "q", box=None, padding=(0, 2, 0, 0), header_style="dim")
    for word in found.words[:PRINTED]:
        words.add_row(
            Text(word.word), str(word.texts), str(word.disagree), f"{word.expected:.1f}", f"{word.q_value:.1e}"
        )
    if found.words:
        console.print(Text("words whose texts disagree too often", style="bold"), words)
    else:
        console.print("no word has texts that disagree more often than chance allows")
    doubtful = Table("row", "label", "suggested", "text", box=None, padding=(0, 2, 0, 0), header_style="dim")
    # A long place would be cut at its end, where the line is: the file is known, and the folder is left out.
    doubtful.columns[0].overflow = "fold"
    for row in found.doubtful[:PRINTED]:
        doubtful.add_row(
            Path(table.place(rows.rows[row.row])).name, Text(str(row.label)), Text(str(row.suggested)), Text(row.text)
        )
    if found.doubtful:
        console.print(Text("the most doubtful rows", style="bold"), doubtful)
    if out is not None:
        console.print(Text(f"written to {found.write_csv(out)}; correct its column `label`, and train on it"))
