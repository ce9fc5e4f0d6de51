"""The trained model of an experiment file with its data, for commands that measure what was trained."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from splade.data import TextDataset
    from splade.models.lexical_sae import LexicalSAE


@dataclass(frozen=True)
class FoundRun:
    """The folder of a run's model, not read yet, and the rows it was trained and tested on."""

    model_folder: Path
    dataset: "TextDataset"
    place: Path
    seed: int


@dataclass(frozen=True)
class OpenedRun:
    """A model, the rows it was trained and tested on, and the folder of its run."""

    model: "LexicalSAE"
    dataset: "TextDataset"
    place: Path
    seed: int


def find_run(config: Path, out: Path | None = None) -> FoundRun:
    """The run of an experiment file, in `out` or its output_dir; one of other settings or rows is refused."""
    from splade.config.load import load_config
    from splade.pipelines import load_data, model_folder, require_same_experiment, require_same_rows

    settings = load_config(config)
    if out is not None:
        settings = settings.model_copy(update={"output_dir": str(out)})
    folder, seed = model_folder(settings), settings.evaluation.seeds[0]
    if not folder.is_dir():
        raise ValueError(f"there is no model in {folder}; train it first: lexical-sae train --config {config}")
    require_same_experiment(settings, folder.parent)
    dataset = load_data(settings, seed)
    require_same_rows(folder.parent, dataset)
    return FoundRun(folder, dataset, Path(settings.output_dir), seed)


def open_run(config: Path, out: Path | None, device: str) -> OpenedRun:
    """The same with its model; one of other labels is refused too."""
    from splade.device import resolve_device
    from splade.models.persistence import from_pretrained
    from splade.pipelines import require_same_labels

    found = find_run(config, out)
    model = from_pretrained(found.model_folder).to(resolve_device(device))
    require_same_labels(model, found.dataset)
    return OpenedRun(model, found.dataset, found.place, found.seed)
