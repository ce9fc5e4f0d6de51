"""Planted corpora as files that `load_text_dataset` reads back."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from lexical_sae.data.examples import TextDataset
from lexical_sae.data.sources.toxicity import CIVIL_IDENTITIES


def write_corpus(dataset: TextDataset, folder: Path) -> None:
    """Write the three splits as CSV files that `load_text_dataset` reads back, identities included."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, split in (("train", dataset.train), ("dev", dataset.validation), ("test", dataset.test)):
        columns: dict[str, Sequence[object]] = {
            "text": split.texts,
            "label": [dataset.label_names[i] for i in split.labels],
        }
        columns |= {f"identity:{group}": values for group, values in (split.identities or {}).items()}
        _write_csv(folder / f"{name}.csv", columns)


def write_civilcomments(dataset: TextDataset, folder: Path) -> None:
    """Write the splits in the layout of CivilComments: negative texts are toxic; most identities have no text."""
    folder.mkdir(parents=True, exist_ok=True)
    columns: dict[str, list[object]] = {}
    for name, split in (("train", dataset.train), ("val", dataset.validation), ("test", dataset.test)):
        nothing = [0.0] * len(split)
        own = {
            "comment_text": split.texts,
            "toxicity": [float(dataset.label_names[i] == "negative") for i in split.labels],
            **{group: (split.identities or {}).get(group, nothing) for group in CIVIL_IDENTITIES},
            "split": [name] * len(split),
        }
        for key, values in own.items():
            columns.setdefault(key, []).extend(values)
    _write_csv(folder / "all_data.csv", columns)


def _write_csv(path: Path, columns: Mapping[str, Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
