"""The trained model of an experiment file with its data, for commands that measure what was trained."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from splade.data import TextDataset
    from splade.models.lexical_sae import LexicalSAE


@dataclass(frozen=True)
class OpenedRun:
    """A model, the rows it was trained and tested on, and the folder of its run."""

    model: "LexicalSAE"
    dataset: "TextDataset"
    place: Path
    seed: int


def open_run(config: Path, out: Path | None, device: str) -> OpenedRun:
    """The run of an experiment file, in `out` or in its output_dir; one of other settings or labels is refused."""
    from splade.config.load import load_config
    from splade.device import resolve_device
    from splade.models.lexical_sae import CLASSIFY
    from splade.models.persistence import from_pretrained
    from splade.pipelines import load_data, model_folder, require_same_experiment

    settings = load_config(config)
    if out is not None:
        settings = settings.model_copy(update={"output_dir": str(out)})
    folder, seed = model_folder(settings), settings.evaluation.seeds[0]
    if not folder.is_dir():
        raise ValueError(f"there is no model in {folder}; train it first: lexical-sae train --config {config}")
    require_same_experiment(settings, folder.parent)
    model, dataset = from_pretrained(folder).to(resolve_device(device)), load_data(settings, seed)
    model.head(CLASSIFY)
    # Labels are numbers from here on: other names would be other classes.
    if tuple(dataset.label_names) != tuple(model.labels[CLASSIFY]):
        raise ValueError(
            f"the labels of {settings.data.dataset_name} are {', '.join(dataset.label_names)}, those of the model in "
            f"{folder} {', '.join(model.labels[CLASSIFY])}: the data changed since training; restore it, or train anew"
        )
    return OpenedRun(model, dataset, Path(settings.output_dir), seed)
