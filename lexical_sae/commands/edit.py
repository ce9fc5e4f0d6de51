"""Edited models and their certificates: the commands `edit`, `certify`, `verify`; and `plant`, corpora to try on."""

from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from lexical_sae.commands.console import console
from lexical_sae.commands.options import (
    File,
    LabelColumn,
    Named,
    SkipBadRows,
    TextColumn,
    named_texts,
    progress,
    require_file,
    saved_model,
)
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.files import require_writable_target

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from rich.console import RenderableType

    from lexical_sae.intervene.certificate import Certificate, NamedTexts
    from lexical_sae.runs.texts import Columns

SHOWN_FLIPS = 20
"""Texts with another label that are listed; all of them are counted."""


def edit(
    model: Annotated[Path, typer.Argument(help="Folder of a run, or of a saved model; it is not changed.")],
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

    Example: lexical-sae edit results/quickstart lexicon.yaml --out results/edited

    The file:   forbid: [muslim, jewish]     words to close, with their plurals and case variants
                keep: [church]               optional: words that must not be closed along with them

    A model with literal words is a table: write it with `lexical-sae lexicon MODEL --table words.csv`, change weights
    or mark words in the column `suppress`, and give it here. Words that the table leaves out stay as they are.

    With --data or --file, also what that does to the texts: accuracy before and after, and the labels that change.
    """
    model = saved_model(model)
    require_file(changes)
    require_file(file)
    proof = certificate or out.with_name(out.name + ".certificate.json")
    _refuse_to_overwrite(out, proof)
    from lexical_sae.intervene import certificate as certificates
    from lexical_sae.report.certificate import certificate_view
    from lexical_sae.runs.texts import Columns

    texts = _texts(model, file, data, Columns(text_column, label_column, labelled or data is not None, skip_bad_rows))
    editor = _by_table if changes.suffix.lower() == ".csv" else _by_lexicon
    console.print(editor(model, changes, out))
    with progress() as bars:
        made = certificates.certify(model, out, texts, on_step=bars)
    certificates.write_certificate(made, proof)
    console.print(certificate_view(made.model_dump(mode="json", exclude_none=True)))
    if texts is not None:
        console.print(_flips(model, out, texts))
    console.print(Text(f"written to {out}, its certificate to {proof}", style="dim"), soft_wrap=True)


Editor = Callable[[Path, Path, Path], "RenderableType"]


def _by_lexicon(model: Path, changes: Path, out: Path) -> "RenderableType":
    from lexical_sae.intervene import edit_saved_model, load_lexicon
    from lexical_sae.report.certificate import removal_table

    done = edit_saved_model(model, load_lexicon(changes), out)
    names = done.model.dimensions.names
    closed = {i for word in done.words for i in word.dimensions}
    words = {word.word: names(word.dimensions) for word in done.words}
    return removal_table(words, names(sorted(closed - set(done.newly_closed))))


def _by_table(model: Path, changes: Path, out: Path) -> "RenderableType":
    from dataclasses import asdict

    from rich.console import Group

    from lexical_sae.inference.labels import labels_of
    from lexical_sae.intervene import edit_saved_by_table
    from lexical_sae.report.certificate import removal_table, weights_table

    done = edit_saved_by_table(model, changes, out)
    names = done.model.dimensions.names
    words = {word.word: names(word.dimensions) for word in done.suppressed}
    parts: list[RenderableType] = [removal_table(words, ())] if words else []
    if done.changed:
        parts.append(weights_table([asdict(change) for change in done.changed], labels_of(done.model)))
    return Group(*parts)


def _texts(model: Path, file: Path | None, data: str | None, columns: "Columns") -> "NamedTexts | None":
    if file is None and data is None:
        return None
    from lexical_sae.models.persistence import from_pretrained

    return named_texts(from_pretrained(model), file, data, columns)


def _flips(before: Path, after: Path, texts: "NamedTexts") -> "RenderableType":
    from lexical_sae.evaluation.corpus.diff import diff_models
    from lexical_sae.models.persistence import from_pretrained
    from lexical_sae.report.diff import flips_view

    models = from_pretrained(before), from_pretrained(after)
    with progress() as bars:
        found = diff_models(*models, texts.texts, texts.labels, max_flips=SHOWN_FLIPS, on_step=bars)
    return flips_view(found.as_dict())


def _refuse_to_overwrite(out: Path, proof: Path) -> None:
    """An edited model is somebody's work: it is replaced only by who deletes it first."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise SettingsError(f"{out} exists already; choose another --out, or delete it first")
    if proof.exists():
        raise SettingsError(f"{proof} exists already; choose another --certificate, or delete it first")
    if proof.resolve().is_relative_to(out.resolve()):
        raise SettingsError(
            f"{proof} is inside {out}, which holds no files but the model's; choose another --certificate"
        )
    require_writable_target(proof, option="--certificate")


def certify(
    original: Annotated[Path, typer.Argument(help="Folder of the run or model before the removal.")],
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

    Example: lexical-sae certify results/quickstart results/edited --data movie_snippets --out certificate.json
    """
    from lexical_sae.data.examples import TextSplit
    from lexical_sae.intervene import certificate as certificates
    from lexical_sae.models.persistence import from_pretrained
    from lexical_sae.report.certificate import certificate_view
    from lexical_sae.report.printable import shown
    from lexical_sae.runs.run import Run, find_run
    from lexical_sae.runs.texts import Columns
    from lexical_sae.runs.unseen import warning_of_learned

    original, edited = saved_model(original), saved_model(edited)
    _refuse_inside_a_model(out, original, edited)
    texts = None
    if file is not None or data is not None:
        texts = named_texts(
            from_pretrained(edited), file, data, Columns(text_column, label_column, labelled, skip_bad_rows)
        )
    with progress() as bars:
        made = certificates.certify(original, edited, texts, on_step=bars)
    certificates.write_certificate(made, out)
    console.print(certificate_view(made.model_dump(mode="json", exclude_none=True)))
    if texts is not None and texts.labels is not None:
        split = TextSplit(tuple(texts.texts), tuple(texts.labels))
        own = find_run(original)
        if warning := warning_of_learned(split, None if own is None else Run(own)):
            console.print(Text(shown(warning), style="bold yellow"), soft_wrap=True)
    read = f" --file {file}" if file is not None else f" --data {data}" if data is not None else ""
    read += " --skip-bad-rows" if skip_bad_rows else ""
    console.print(Text(f"written to {out}; check it with: lexical-sae verify {out} {edited}{read}", style="dim"))


def _refuse_inside_a_model(out: Path, *folders: Path) -> None:
    """A model's folder holds the files that were saved with it and no others."""
    for folder in folders:
        if out.expanduser().resolve().is_relative_to(folder.expanduser().resolve()):
            raise SettingsError(
                f"{out} is inside the model's folder {folder}, which holds no other files; write elsewhere"
            )


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
    from lexical_sae.intervene import certificate as certificates
    from lexical_sae.models.persistence import from_pretrained
    from lexical_sae.report.certificate import checks_table
    from lexical_sae.runs.texts import Columns

    edited = saved_model(edited)
    original = None if original is None else saved_model(original)
    claimed = certificates.read_certificate(certificate)
    labelled = _effect_to_check(claimed, file, data, skip_data=skip_data)
    checks = certificates.verify_files(claimed, edited, original)
    # With one byte changed, the model may not even load.
    if all(check.holds for check in checks):
        model = from_pretrained(edited)
        texts = None
        if labelled is not None:
            texts = named_texts(model, file, data, Columns(text_column, label_column, labelled, skip_bad_rows))
        with progress() as bars:
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
            raise SettingsError("this certificate claims no effect on a data set; leave --file and --data out")
        return None
    source = claimed.effect.data
    if not given and not skip_data:
        way = f"--data {source.name}" if source.file_sha256 is None else f"--file {source.name}"
        raise SettingsError(
            f"this certificate claims an effect on {source.name}; give it with {way}, or say --skip-data"
        )
    return None if skip_data else source.labelled


class Planted(StrEnum):
    """What is planted."""

    bias = "bias"
    fair = "fair"
    leak = "leak"
    no_leak = "no-leak"
    civilcomments = "civilcomments"


def plant(
    kind: Annotated[Planted, typer.Argument(help="bias or fair; leak or no-leak; or civilcomments.")],
    out: Annotated[Path, typer.Option(help="New folder for the corpus, in CSV files.")],
    texts: Annotated[int, typer.Option(help="Train texts; the others have a quarter each.", min=8)] = 4000,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Write a corpus made by templates, in which what decides the label is known.

    bias: in train, "sailor" goes with negative texts; fair: it does not. leak: other words reveal the concept too.

    civilcomments: bias with "muslim" and "christian", in the layout of CivilComments, as a stand-in where the real data
    cannot be had.

    Example: lexical-sae plant bias --out results/planted_bias/data
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise SettingsError(f"{out} exists already; choose another --out, or delete it first")
    from lexical_sae.data.sources.planted import planted_bias, planted_leak
    from lexical_sae.data.sources.planted_files import write_civilcomments, write_corpus

    makers = {
        Planted.bias: lambda: planted_bias(texts, seed),
        Planted.fair: lambda: planted_bias(texts, seed, rate=0.5),
        Planted.leak: lambda: planted_leak(texts, seed, leak=True),
        Planted.no_leak: lambda: planted_leak(texts, seed, leak=False),
        Planted.civilcomments: lambda: planted_bias(texts, seed, groups=("muslim", "christian")),
    }
    write = write_civilcomments if kind is Planted.civilcomments else write_corpus
    write(makers[kind]().dataset, out)
    console.print(Text(f"written to {out}", style="dim"))
