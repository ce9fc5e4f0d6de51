"""Explanations of many texts as a table: the command `score`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lexical_sae.commands.options import Model, print_notes, progress, require_choice, saved_model
from lexical_sae.utils.errors import MissingPackageError, SettingsError

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from lexical_sae.scale.inputs import Input
    from lexical_sae.scale.score import Engine
    from lexical_sae.scale.scorer import ScoreSettings

EXPLAIN = ("top", "all", "none")
ENGINES = ("local", "ray")
DTYPES = ("float32", "bfloat16")
"""What `--explain`, `--engine` and `--dtype` take: known here too, so that a typo does not wait for torch."""


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
    workers: Annotated[int, typer.Option(help="Processes or actors; 0 for one per core.", min=0)] = 0,
    engine: Annotated[
        str, typer.Option(help="local (processes of this machine) or ray (actors of a cluster).")
    ] = "local",
    ray_address: Annotated[
        str | None, typer.Option(help="Cluster for --engine ray, as in ray://head:10001; by default this machine.")
    ] = None,
    gpus: Annotated[float, typer.Option(help="GPUs of each actor, with --engine ray.", min=0)] = 0,
    dtype: Annotated[
        str, typer.Option(help="What the encoder computes in: float32, or bfloat16 (its effect is measured first).")
    ] = "float32",
    batch_size: Annotated[int, typer.Option(help="Texts that the model reads at a time.", min=1)] = 32,
    rows_per_part: Annotated[int, typer.Option(help="Rows of a file of the table.", min=1)] = 4096,
) -> None:
    """Score any number of texts into Parquet files: a row per text, with its decision and the words behind it.

    Example: lexical-sae score results/quickstart reviews.parquet --out scored

    Texts are read and written a part at a time, so that memory does not grow with their number. A run that was stopped
    goes on with --resume; no row is lost or doubled. Rows without a text are in scored/rejected, with the reason.

    Then ask the table: lexical-sae audit scored
    """
    require_choice("--explain", explain, EXPLAIN)
    require_choice("--engine", engine, ENGINES)
    require_choice("--dtype", dtype, DTYPES)
    if engine != "ray" and (ray_address or gpus):
        raise SettingsError("--ray-address and --gpus are for --engine ray")
    folder = saved_model(model)
    try:
        from lexical_sae.scale import inputs
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
        dtype=dtype,  # pyright: ignore[reportArgumentType]
    )
    if dtype != "float32" and not resume:
        typer.echo(_effect(folder, found[0], settings))
    with progress() as bars:
        totals = score_files(
            str(folder.resolve()),
            found,
            settings,
            str(out),
            workers=workers,
            engine=_engine(engine, ray_address, gpus),
            resume=resume,
            on_step=bars,
        )
    rejected = f", {totals.rejected} without a usable text (in {out / 'rejected'})" if totals.rejected else ""
    typer.echo(f"{totals.rows} rows in {totals.parts} files in {out}{rejected}")


def _effect(folder: Path, first: "Input", settings: "ScoreSettings") -> str:
    """What another precision of the encoder changes in the first texts."""
    import torch

    from lexical_sae.models.persistence import from_pretrained
    from lexical_sae.scale.parts import parts_of
    from lexical_sae.scale.precision_effect import SAMPLE, PrecisionEffect
    from lexical_sae.utils.precision import require_encoder_type

    require_encoder_type(settings.dtype, torch.device("cpu"), "--dtype")
    texts = next(parts_of(first, settings.columns, SAMPLE)).texts
    return str(PrecisionEffect.of(from_pretrained(folder, mapped=True), texts, settings.dtype, settings.batch_size))


def _engine(name: str, address: str | None, gpus: float) -> "Engine":
    if name == "local":
        from lexical_sae.scale.local import score_locally

        return score_locally
    try:
        from lexical_sae.scale.on_ray import RayEngine
    except ModuleNotFoundError as error:
        raise MissingPackageError(f"--engine ray needs {error.name}: pip install 'lexical-sae[ray]'") from error
    return RayEngine(address, gpus)
