"""Check a certificate again: the command `verify`."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from splade.scripts.console import console, run_command
from splade.scripts.corpus import Columns, File, LabelColumn, Named, SkipBadRows, TextColumn, progress_beside

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from splade.certificate import Certificate


def verify(
    certificate: Annotated[Path, typer.Argument(help="The certificate (JSON).")],
    edited: Annotated[Path, typer.Argument(help="Folder of the edited model.")],
    file: File = None,
    data: Named = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    skip_bad_rows: SkipBadRows = False,
    original: Annotated[Path | None, typer.Option(help="Folder of the original; its files are compared too.")] = None,
    skip_data: Annotated[bool, typer.Option("--skip-data", help="Do not check the effect on the data again.")] = False,
) -> None:
    """Check every claim of a removal certificate again, from the edited model and the data alone.

    Example: lexical-sae verify certificate.json results/edited --data movie_snippets

    Ends with exit code 1 if one claim fails. The original model is not needed.
    """
    from splade import certificate as certificates
    from splade.models.persistence import from_pretrained
    from splade.report.surgery_terminal import checks_table
    from splade.scripts.surgery_data import named_texts

    claimed = certificates.read_certificate(certificate)
    labelled = _effect_to_check(claimed, file, data, skip_data=skip_data)
    checks = certificates.verify_files(claimed, edited, original)
    # With one byte changed, the model may not even load.
    if all(check.holds for check in checks):
        model = from_pretrained(edited)
        texts = None
        if labelled is not None:
            texts = named_texts(model, file, data, Columns(text_column, label_column, labelled, skip_bad_rows))
        with progress_beside() as bars:
            checks += certificates.verify_model(claimed, model, texts, on_step=bars)
    console.print(checks_table([asdict(check) for check in checks]))
    if claimed.effect is not None and labelled is None:
        console.print(Text("the effect on the data was not checked (--skip-data)", style="yellow"))
    if claimed.leakage is not None:
        console.print(Text("leakage is as it was written; this command does not measure it again", style="yellow"))
    if not all(check.holds for check in checks):
        raise typer.Exit(1)


def _effect_to_check(claimed: "Certificate", file: Path | None, data: str | None, *, skip_data: bool) -> bool | None:
    """Whether the data is read with labels; None if the effect is not to be checked, which takes saying so."""
    given = file is not None or data is not None
    if claimed.effect is None:
        if given:
            raise ValueError("this certificate claims no effect on a data set; leave --file and --data out")
        return None
    source = claimed.effect.data
    if not given and not skip_data:
        way = f"--data {source.name}" if source.file_sha256 is None else f"--file {source.name}"
        raise ValueError(f"this certificate claims an effect on {source.name}; give it with {way}, or say --skip-data")
    return None if skip_data else source.labelled


if __name__ == "__main__":
    run_command(verify)
