"""Explanations of many texts as a table: the command `score`."""

from pathlib import Path
from typing import Annotated

import typer

from lexical_sae.commands.options import Model, print_notes, progress, require_choice, saved_model
from lexical_sae.utils.errors import MissingPackageError

EXPLAIN = ("top", "all", "none")
"""What `--explain` takes: known here too, so that a typo does not wait for torch."""


def score(
    model: Model,
    texts: Annotated[list[str], typer.Argument(help="Files, folders or patterns: CSV, JSON lines, Parquet, Arrow.")],
    out: Annotated[Path, typer.Option(help="Folder for the table; new, unless with --resume.")],
    explain: Annotated[str, typer.Option(help="Words to list: top, all or none.")] = "top",
    top: Annotated[int, typer.Option(help="How many words, with --explain top.", min=1)] = 10,
    all_tokens: Annotated[
        bool, typer.Option("--all-tokens", help="List word pieces and symbols too (##ing, !, 7).")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where a run stopped, with the same options.")] = False,
    text_column: Annotated[str | None, typer.Option(help="Column with the text; inferred when not given.")] = None,
    label_column: Annotated[str | None, typer.Option(help="Column with a label to keep; inferred by name.")] = None,
    keep_columns: Annotated[
        str | None, typer.Option(help="Columns of the input to keep, as in region,date; or all.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes; 0 for one per core.", min=0)] = 0,
    batch_size: Annotated[int, typer.Option(help="Texts that the model reads at a time.", min=1)] = 32,
    rows_per_part: Annotated[int, typer.Option(help="Rows of a file of the table.", min=1)] = 4096,
) -> None:
    """Score any number of texts into Parquet files: a row per text, with its decision and the words behind it.

    Example: lexical-sae score results/quickstart reviews.parquet --out scored

    Texts are read and written a part at a time, so that memory does not grow with their number. A run that was stopped
    goes on with --resume; no row is lost or doubled. Rows without a text are in scored/rejected, with the reason.

    Then ask the table: duckdb -c "select prediction, count(*) from 'scored/*.parquet' group by all"
    """
    require_choice("--explain", explain, EXPLAIN)
    folder = saved_model(model)
    try:
        from lexical_sae.scale import inputs
        from lexical_sae.scale.local import usable_cores
        from lexical_sae.scale.score import score_files
        from lexical_sae.scale.scorer import ScoreSettings
    except ModuleNotFoundError as error:
        raise MissingPackageError(f"scoring needs {error.name}: pip install 'lexical-sae[scale]'") from error
    from lexical_sae.models.persistence import saved_sha256

    found = inputs.find_inputs(texts)
    kept = [name.strip() for name in (keep_columns or "").split(",") if name.strip()]
    columns, notes = inputs.choose_columns(found[0], text_column, label_column, kept)
    print_notes(notes)
    settings = ScoreSettings(
        model=saved_sha256(folder),
        columns=columns,
        explain=explain,  # pyright: ignore[reportArgumentType]
        top=top,
        all_tokens=all_tokens,
        batch_size=batch_size,
        rows=rows_per_part,
    )
    with progress() as bars:
        totals = score_files(
            str(folder.resolve()),
            found,
            settings,
            str(out),
            workers=workers or usable_cores(),
            resume=resume,
            on_step=bars,
        )
    rejected = f", {totals.rejected} without a usable text (in {out / 'rejected'})" if totals.rejected else ""
    typer.echo(f"{totals.rows} rows in {totals.parts} files in {out}{rejected}")
