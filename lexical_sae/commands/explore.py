"""A classifier to read, question and edit in the browser: the command `explore`."""

import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from lexical_sae.commands.console import console
from lexical_sae.commands.options import (
    File,
    LabelColumn,
    Named,
    SkipBadRows,
    TextColumn,
    load_corpus,
    progress,
    require_file,
)


def explore(
    run: Annotated[Path, typer.Argument(help="Folder of a run, or of the model in it.")],
    out: Annotated[Path | None, typer.Option(help="File to write; by default explorer.html in the folder.")] = None,
    against: Annotated[Path | None, typer.Option(help="Another run, to compare it with on the same texts.")] = None,
    file: File = None,
    data: Named = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    skip_bad_rows: SkipBadRows = False,
    texts: Annotated[int, typer.Option(help="Most texts to take, drawn at random.", min=1)] = 5000,
    show: Annotated[bool, typer.Option("--open/--no-open", help="Open it in the browser, from a terminal.")] = True,
) -> None:
    """Write a page to read, question and edit a classifier on its test texts, and open it.

    Example: lexical-sae explore results/quickstart

    One file, which needs no server and asks nothing of the network. Suppress a word or change its weight: all texts are
    decided again in the page, to the numbers of `lexical-sae edit`. `lexical-sae serve` reads new texts too.
    """
    require_file(run)
    require_file(file)
    from lexical_sae.report.printable import shown
    from lexical_sae.runs import Run
    from lexical_sae.runs.pages.explorer import write_explorer
    from lexical_sae.runs.texts import Columns

    opened = Run.open(run)
    corpus = None
    if file is not None or data is not None:
        corpus = load_corpus(opened.first.model, file, data, Columns(text_column, label_column, True, skip_bad_rows))
    other = None if against is None else Run.open(against)
    with progress() as bars:
        written = write_explorer(opened, out, other, corpus, texts=texts, on_step=bars)
    if show and sys.stdout.isatty():
        webbrowser.open(written.resolve().as_uri())
    console.print(Text(shown(f"written to {written}; open it in a browser"), style="dim"), soft_wrap=True)
