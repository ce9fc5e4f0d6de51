"""Write a corpus with a planted concept or bias, to see whether a method finds it: the command `plant`."""

import csv
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from splade.scripts.console import console, run_command

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from splade.data import TextDataset


Columns = dict[str, Sequence[object]]


class Planted(StrEnum):
    """What is planted."""

    bias = "bias"
    fair = "fair"
    leak = "leak"
    no_leak = "no-leak"
    civilcomments = "civilcomments"


def plant(
    kind: Annotated[Planted, typer.Argument(help="bias or fair; leak or no-leak; or civilcomments.")],
    out: Annotated[Path, typer.Option(help="Folder for the corpus, in CSV files.")],
    texts: Annotated[int, typer.Option(help="Train texts; the others have a quarter each.", min=8)] = 4000,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Write a corpus made by templates, in which what decides the label is known.

    bias: in train "sailor" stands beside negative texts; fair: it does not. leak: other words give the coast away too.

    civilcomments: bias with "muslim" and "christian", in the layout of CivilComments, as a stand-in where the real data
    cannot be had.

    Example: lexical-sae plant bias --out results/planted_bias/data
    """
    from splade.data.planted import planted_bias, planted_leak

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


def write_corpus(dataset: "TextDataset", folder: Path) -> None:
    """Write the three splits as CSV files that `load_text_dataset` reads back, identities included."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, split in (("train", dataset.train), ("dev", dataset.validation), ("test", dataset.test)):
        columns: Columns = {"text": split.texts, "label": [dataset.label_names[i] for i in split.labels]}
        columns |= {f"identity:{group}": values for group, values in (split.identities or {}).items()}
        _write_csv(folder / f"{name}.csv", columns)


def write_civilcomments(dataset: "TextDataset", folder: Path) -> None:
    """Write the splits in the layout of CivilComments: negative texts are toxic; most identities have no text."""
    from splade.data.toxicity import CIVIL_IDENTITIES

    folder.mkdir(parents=True, exist_ok=True)
    columns: dict[str, list[object]] = {}
    for name, split in (("train", dataset.train), ("val", dataset.validation), ("test", dataset.test)):
        nobody = [0.0] * len(split)
        own = {
            "comment_text": split.texts,
            "toxicity": [float(dataset.label_names[i] == "negative") for i in split.labels],
            **{group: (split.identities or {}).get(group, nobody) for group in CIVIL_IDENTITIES},
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


if __name__ == "__main__":
    run_command(plant)
