"""What several commands share: their options, and how they find a model, a run and texts."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from lexical_sae.commands.console import watching
from lexical_sae.utils.errors import SavedFileError, SettingsError
from lexical_sae.utils.suggest import did_you_mean

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from collections.abc import Sequence

    from lexical_sae.config.schema import ExperimentConfig
    from lexical_sae.intervene.certificate import NamedTexts
    from lexical_sae.models.lexical_sae import LexicalSAE
    from lexical_sae.runs import Run
    from lexical_sae.runs.texts import Columns, Corpus

METHODS = ("dla", "path", "leave_one_out")
RECIPES = ("anchored", "cajt", "cis", "lexical_sae", "neighbours", "transcoder")
TARGETS = ("classes", "labels", "number")
"""What `--method`, `--recipe` and `--target` take: known here too, so that a typo does not wait for torch."""

Model = Annotated[Path, typer.Argument(help="Folder of a run, or of a saved model.")]
RunFolder = Annotated[
    Path | None, typer.Argument(help="Folder of a run, or of the model in it.", show_default=False, metavar="[RUN]")
]
Config = Annotated[
    Path | None, typer.Option(help="Experiment file (YAML) instead; its model is trained if there is none yet.")
]
Out = Annotated[Path | None, typer.Option(help="With --config: folder of the run; by default its output_dir.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Resume training that was interrupted, from its last checkpoint.")
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.", callback=lambda name: _known_device(name))]
NamesTexts = Annotated[int, typer.Option(help="Test texts for the name tests.", min=1)]
AllTokens = Annotated[
    bool,
    typer.Option(
        "--all-tokens",
        help="Name word pieces, punctuation and numbers too (##ing, !, 7); by default one row sums them.",
    ),
]
MergeInflections = Annotated[
    bool, typer.Option("--merge-inflections", help="Show forms of one word (film, films) as one, with their sum.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
File = Annotated[Path | None, typer.Option(help="Your texts: a data file (CSV, JSON, Parquet, Excel, …).")]
Named = Annotated[str | None, typer.Option(help="A data set by name (docs/data.md); its test texts are used.")]
TextColumn = Annotated[str | None, typer.Option(help="Column with the text; inferred when not given.")]
LabelColumn = Annotated[str | None, typer.Option(help="Column with the label; inferred when not given.")]
LabelColumns = Annotated[
    str | None,
    typer.Option(
        help="Columns of 0 and 1, one per label, where texts have any number of labels: toxic,threat,insult.",
        metavar="NAME,NAME,…",
    ),
]
LabelSeparator = Annotated[
    str | None,
    typer.Option(help='What stands between the labels of a cell, where texts have any number of labels: ";".'),
]
SkipBadRows = Annotated[
    bool, typer.Option("--skip-bad-rows", help="Leave out rows of a file without text (or label) instead of stopping.")
]


def listed(names: str | None) -> tuple[str, ...]:
    """Names with commas between. Example: "toxic, threat" -> ("toxic", "threat")"""
    return tuple(name.strip() for name in (names or "").split(",") if name.strip())


def saved_model(path: Path) -> Path:
    """The folder of a saved model, given it or the folder of its run; checked without loading anything heavy."""
    place = path.expanduser()
    inside = (place / "model", *sorted(place.glob("seed-*/model"), key=lambda p: (len(p.parent.name), p.parent.name)))
    found = next((folder for folder in inside if (folder / "config.json").is_file()), place)
    if not (found / "config.json").is_file():
        what = "is not a saved model" if place.exists() else "is not there"
        raise SavedFileError(f"{path} {what}; give the folder of a run, or of the model in it")
    return found


def load_model(path: Path) -> "LexicalSAE":
    """The saved model of a run's or a model's folder."""
    folder = saved_model(path)
    with Console(stderr=True).status("loading the model"):
        from lexical_sae.models.persistence import from_pretrained

        return from_pretrained(folder)


def experiment_of(config: Path, out: Path | None = None) -> "ExperimentConfig":
    """The settings of an experiment file, its run in `out` or its output_dir."""
    from lexical_sae.config.load import load_config

    settings = load_config(config)
    return settings if out is None else settings.model_copy(update={"output_dir": str(out)})


def check_run(folder: Path | None, config: Path | None, out: Path | None) -> None:
    """Refuse a run that cannot be meant, before anything heavy is loaded."""
    if (folder is None) == (config is None):
        raise SettingsError("give either the folder of a run, or an experiment file (--config FILE)")
    if folder is not None and out is not None:
        raise SettingsError(f"--out is for --config; the run is in {folder}")
    if folder is not None:
        saved_model(folder)
    require_file(config, "experiment file")


def chosen_run(folder: Path | None, config: Path | None, out: Path | None, device: str) -> "Run":
    """The run in a folder, or that of an experiment file, which may not be there yet."""
    check_run(folder, config, out)
    from lexical_sae.runs import Run

    return Run.of(experiment_of(config, out), device) if config is not None else Run.open(str(folder), device)


def trained_run(folder: Path | None, config: Path | None, out: Path | None, device: str, *, resume: bool) -> "Run":
    """A run with its model, trained if an experiment file has none yet; other settings or rows are refused."""
    run = chosen_run(folder, config, out, device)
    from lexical_sae.runs import experiment

    if config is not None:
        with watching() as watchers:
            experiment.ensure_trained(run, resume=resume, watchers=watchers)
    run.first.model_and_data()
    return run


def load_corpus(model: "LexicalSAE", file: Path | None, data: str | None, columns: "Columns") -> "Corpus":
    """The texts that were named, with their classes if those are wanted; notes go to standard error."""
    from lexical_sae.runs import texts

    corpus = texts.load_corpus(model, file, data, columns)
    print_notes(corpus.notes)
    return corpus


def named_texts(model: "LexicalSAE", file: Path | None, data: str | None, columns: "Columns") -> "NamedTexts":
    """The texts of a file or of a named set for a certificate; the model says how classes are numbered."""
    from lexical_sae.intervene.certificate import NamedTexts

    corpus = load_corpus(model, file, data, columns)
    name = data if file is None else file.name
    assert name is not None
    return NamedTexts(name, corpus.texts, corpus.labels, file)


def require_file(path: str | Path | None, kind: str = "file or folder") -> None:
    """Refuse a file that is not there, before anything heavy is loaded; a plain name may be that of a data set."""
    is_name = isinstance(path, str) and not Path(path).suffix and Path(path).name == path
    if path is not None and not is_name and not Path(path).expanduser().exists():
        raise FileNotFoundError(f"there is no {kind} {path}")


def require_choice(option: str, value: str | None, known: "Sequence[str]") -> None:
    """Refuse a value that an option does not have, before anything heavy is loaded."""
    if value is not None and value not in known:
        raise SettingsError(f"{option} {value!r} is unknown{did_you_mean(value, known)} Choose from {', '.join(known)}")


def _known_device(name: str) -> str:
    if not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", name):
        raise SettingsError(f"device {name!r} is unknown; choose 'auto', 'cpu', 'cuda', 'cuda:0' or 'mps'")
    return name


def print_notes(notes: "Sequence[str]") -> None:
    """Notes on standard error, so that the result alone can be piped."""
    from lexical_sae.report.printable import shown

    for note in notes:
        typer.echo(shown(note), err=True)


def progress() -> Any:
    """Progress on standard error, so that the result alone can be piped."""
    from lexical_sae.report.progress import ProgressBars

    return ProgressBars(Console(stderr=True))
