"""Write the certificate of a removal: the command `certify`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from splade.scripts.console import console, run_command
from splade.scripts.corpus import Columns, File, LabelColumn, Named, SkipBadRows, TextColumn, progress_beside


def certify(
    original: Annotated[Path, typer.Argument(help="Folder of the model before the removal.")],
    edited: Annotated[Path, typer.Argument(help="Folder of the model after it.")],
    out: Annotated[Path, typer.Option(help="File for the certificate (JSON), outside the models' folders.")],
    file: File = None,
    data: Named = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    skip_bad_rows: SkipBadRows = False,
    labelled: Annotated[
        bool, typer.Option("--labelled", help="Give accuracy before and after, by the labels.")
    ] = False,
) -> None:
    """Certify that words were removed from a model and nothing else changed; with texts, also what that did to them.

    Example: lexical-sae certify results/quickstart/model results/edited --data movie_snippets --out certificate.json
    """
    from splade import certificate as certificates
    from splade.data.examples import TextSplit
    from splade.models.persistence import from_pretrained
    from splade.report.printable import shown
    from splade.report.surgery_terminal import certificate_view
    from splade.scripts.surgery_data import named_texts
    from splade.scripts.unseen_texts import told_of_learned

    _refuse_inside_a_model(out, original, edited)
    texts = None
    if file is not None or data is not None:
        texts = named_texts(
            from_pretrained(edited), file, data, Columns(text_column, label_column, labelled, skip_bad_rows)
        )
    with progress_beside() as bars:
        made = certificates.certify(original, edited, texts, on_step=bars)
    certificates.write_certificate(made, out)
    console.print(certificate_view(made.model_dump(mode="json", exclude_none=True)))
    if texts is not None and texts.labels is not None:
        split = TextSplit(tuple(texts.texts), tuple(texts.labels))
        if told := told_of_learned(split, original.resolve().parent):
            console.print(Text(shown(told), style="bold yellow"), soft_wrap=True)
    read = f" --file {file}" if file is not None else f" --data {data}" if data is not None else ""
    read += " --skip-bad-rows" if skip_bad_rows else ""
    console.print(Text(f"written to {out}; check it with: lexical-sae verify {out} {edited}{read}", style="dim"))


def _refuse_inside_a_model(out: Path, *folders: Path) -> None:
    """A model's folder holds the files that were saved with it and no others."""
    for folder in folders:
        if out.expanduser().resolve().is_relative_to(folder.expanduser().resolve()):
            raise ValueError(
                f"{out} is inside the model's folder {folder}, which holds no other files; write elsewhere"
            )


if __name__ == "__main__":
    run_command(certify)
