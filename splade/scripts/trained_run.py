"""The trained model of an experiment file with its data, for commands that measure what was trained.

A model that is not there yet is trained first, as `lexical-sae train` does it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from splade.scripts.console import console
from splade.scripts.watching import watching

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from splade.config.schema import ExperimentConfig
    from splade.data import TextDataset
    from splade.models.lexical_sae import LexicalSAE

Config = Annotated[Path, typer.Option(help="Experiment file (YAML); its model is trained if there is none yet.")]
Out = Annotated[Path | None, typer.Option(help="Folder of the run; by default the experiment's output_dir.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Resume training that was interrupted, from its last checkpoint.")
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]


@dataclass(frozen=True)
class Experiment:
    """The settings of an experiment file, and the rows that its model is trained and tested on."""

    settings: "ExperimentConfig"
    dataset: "TextDataset"

    @property
    def place(self) -> Path:
        """The folder of its run."""
        return Path(self.settings.output_dir)

    @property
    def seed(self) -> int:
        """That of the model that is measured: the first."""
        return self.settings.evaluation.seeds[0]


@dataclass(frozen=True)
class OpenedRun(Experiment):
    """An experiment with its trained model."""

    model_folder: Path
    model: "LexicalSAE"


def open_experiment(config: Path, out: Path | None = None) -> Experiment:
    """The experiment of a file, its run in `out` or its output_dir. Data that cannot be had is refused here."""
    from splade.config.load import load_config
    from splade.pipelines import load_data

    settings = load_config(config)
    if out is not None:
        settings = settings.model_copy(update={"output_dir": str(out)})
    return Experiment(settings, load_data(settings, settings.evaluation.seeds[0]))


def trained_model(experiment: Experiment, device: str, *, resume: bool) -> Path:
    """The folder of the experiment's model, trained now if there is none; one of other settings or rows is refused."""
    from splade.pipelines import model_folder, require_same_experiment, require_same_rows, run_experiment

    folder = model_folder(experiment.settings)
    if not folder.is_dir():
        console.print(Text(f"there is no model in {folder} yet; it is trained first", style="dim"))
        with watching() as watchers:
            run_experiment(experiment.settings, resume=resume, device=device, watchers=watchers)
        folder = model_folder(experiment.settings)
    require_same_experiment(experiment.settings, folder.parent)
    require_same_rows(folder.parent, experiment.dataset)
    return folder


def open_run(config: Path, out: Path | None, device: str, *, resume: bool) -> OpenedRun:
    """The experiment of a file with its model, trained if there is none; data with other labels is refused too."""
    from splade.device import resolve_device
    from splade.models.persistence import from_pretrained
    from splade.pipelines import require_same_labels

    experiment = open_experiment(config, out)
    folder = trained_model(experiment, device, resume=resume)
    model = from_pretrained(folder).to(resolve_device(device))
    require_same_labels(model, experiment.dataset)
    return OpenedRun(experiment.settings, experiment.dataset, folder, model)
