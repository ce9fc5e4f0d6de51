"""Take words out of a saved model, or give them other weights: the command `edit`."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from splade.files import require_writable_target
from splade.scripts.console import console, run_command
from splade.scripts.corpus import Columns, File, LabelColumn, Named, SkipBadRows, TextColumn, progress_beside

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from rich.console import RenderableType

    from splade.certificate import NamedTexts

SHOWN_FLIPS = 20
"""Texts with another label that are listed; all of them are counted."""


def edit(
    model: Annotated[Path, typer.Argument(help="Folder of a saved model; it is not changed.")],
    changes: Annotated[Path, typer.Argument(help="YAML file with words under 'forbid:', or a CSV table of weights.")],
    out: Annotated[Path, typer.Option(help="New folder for the edited model.")],
    file: File = None,
    data: Named = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    skip_bad_rows: SkipBadRows = False,
    labelled: Annotated[bool, typer.Option("--labelled", help="With --file: accuracy by its labels.")] = False,
    certificate: Annotated[
        Path | None, typer.Option(help="File for the certificate; by default beside OUT, as OUT.certificate.json.")
    ] = None,
) -> None:
    """Save a copy of a model without some words, or with other weights for some, and certify what was changed.

    Example: lexical-sae edit results/quickstart/model lexicon.yaml --out results/edited

    The file:   forbid: [muslim, jewish]     words to close, with their plurals and case variants
                keep: [church]               optional: words that must not be closed along with them

    A model with literal words is a table: write it with `lexical-sae lexicon MODEL --table words.csv`, change weights
    or mark words in the column `suppress`, and give it here. Words that the table leaves out stay as they are.

    With --data or --file, also what that does to the texts: accuracy before and after, and the labels that change.
    """
    from splade import certificate as certificates
    from splade.report.surgery_terminal import certificate_view

    proof = certificate or out.with_name(out.name + ".certificate.json")
    _refuse_to_overwrite(out, proof)
    texts = _texts(model, file, data, Columns(text_column, label_column, labelled or data is not None, skip_bad_rows))
    editor = _by_table if changes.suffix.lower() == ".csv" else _by_lexicon
    console.print(editor(model, changes, out))
    with progress_beside() as bars:
        made = certificates.certify(model, out, texts, on_step=bars)
    certificates.write_certificate(made, proof)
    console.print(certificate_view(made.model_dump(mode="json", exclude_none=True)))
    if texts is not None:
        console.print(_flips(model, out, texts))
    console.print(Text(f"written to {out}, its certificate to {proof}", style="dim"), soft_wrap=True)


Editor = Callable[[Path, Path, Path], "RenderableType"]


def _by_lexicon(model: Path, changes: Path, out: Path) -> "RenderableType":
    from splade.intervene import edit_saved_model, load_lexicon
    from splade.report.surgery_terminal import removal_table

    done = edit_saved_model(model, load_lexicon(changes), out)
    names = done.model.dimensions.names
    closed = {i for word in done.words for i in word.dimensions}
    words = {word.word: names(word.dimensions) for word in done.words}
    return removal_table(words, names(sorted(closed - set(done.newly_closed))))


def _by_table(model: Path, changes: Path, out: Path) -> "RenderableType":
    from dataclasses import asdict

    from rich.console import Group

    from splade.inference.labels import labels_of
    from splade.intervene import edit_saved_by_table
    from splade.report.surgery_terminal import removal_table, weights_table

    done = edit_saved_by_table(model, changes, out)
    names = done.model.dimensions.names
    words = {word.word: names(word.dimensions) for word in done.suppressed}
    parts: list[RenderableType] = [removal_table(words, ())] if words else []
    if done.changed:
        parts.append(weights_table([asdict(change) for change in done.changed], labels_of(done.model)))
    return Group(*parts)


def _texts(model: Path, file: Path | None, data: str | None, columns: Columns) -> "NamedTexts | None":
    if file is None and data is None:
        return None
    from splade.models.persistence import from_pretrained
    from splade.scripts.surgery_data import named_texts

    return named_texts(from_pretrained(model), file, data, columns)


def _flips(before: Path, after: Path, texts: "NamedTexts") -> "RenderableType":
    from splade.evaluation.diff import diff_models
    from splade.models.persistence import from_pretrained
    from splade.report.diff_terminal import flips_view

    models = from_pretrained(before), from_pretrained(after)
    with progress_beside() as bars:
        found = diff_models(*models, texts.texts, texts.labels, max_flips=SHOWN_FLIPS, on_step=bars)
    return flips_view(found.as_dict())


def _refuse_to_overwrite(out: Path, proof: Path) -> None:
    """An edited model is somebody's work: it is replaced only by who deletes it first."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"{out} exists already; choose another --out, or delete it first")
    if proof.exists():
        raise ValueError(f"{proof} exists already; choose another --certificate, or delete it first")
    if proof.resolve().is_relative_to(out.resolve()):
        raise ValueError(f"{proof} is inside {out}, which holds no files but the model's; choose another --certificate")
    require_writable_target(proof, option="--certificate")


if __name__ == "__main__":
    run_command(edit)
