"""Remove a concept from an experiment's model and measure what that does: `python -m splade.scripts.run_surgery`.

The same as `lexical-sae surgery`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from splade.scripts.console import console, run_command

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from splade.surgery import OtherTexts


def surgery(
    config: Annotated[Path, typer.Option(help="Experiment file (YAML) whose trained model is in its output_dir.")],
    concept: Annotated[str, typer.Option(help="Identity to remove: an identity column, or a --group.")],
    positive: Annotated[str, typer.Option(help="Labels a group may be wrongly given, separated by commas: toxic.")],
    words: Annotated[str, typer.Option(help="Words to remove, separated by commas; chosen when not given.")] = "",
    group: Annotated[
        list[str] | None, typer.Option(help="A group by its words, as in muslim=muslim,muslims,islam; repeatable.")
    ] = None,
    swap: Annotated[
        list[str] | None, typer.Option(help="Words to swap in the texts, as in muslim:christian; repeatable.")
    ] = None,
    epsilon: Annotated[float, typer.Option(help="Gap of false positive rates that is left alone.", min=0)] = 0.05,
    delta: Annotated[float, typer.Option(help="Greatest loss of accuracy when words are chosen.", min=0)] = 0.01,
    also: Annotated[Path | None, typer.Option(help="Another file of texts to measure the same removals on.")] = None,
    also_positive: Annotated[str, typer.Option(help="Its positive labels, separated by commas.")] = "",
    also_texts: Annotated[int, typer.Option(help="Most texts of it to read, drawn by lot.", min=1)] = 5000,
    out: Annotated[Path | None, typer.Option(help="Folder for the results; default: output_dir/surgery.")] = None,
    seed: Annotated[int, typer.Option(help="For rows drawn by lot, probes and random words.", min=0)] = 0,
) -> None:
    """Remove words from a trained model: what gap that closes, what it costs, and how much of the concept still leaks.

    Example: lexical-sae surgery --config experiments/surgery/toxigen.yaml --concept muslim --positive toxic

    Writes surgery.json, surgery.html, leakage.svg, the lexicon, the edited model and its certificate.
    """
    from splade.report.progress import ProgressBars
    from splade.report.surgery_study import study_view
    from splade.scripts.trained_run import find_run
    from splade.surgery import SurgeryPlan, run_surgery

    group_words = {name: _listed(some) for name, some in (_halves(one, "=", "group") for one in group or ())}
    swaps = dict(_halves(one, ":", "swap") for one in swap or ())
    found = find_run(config)
    plan = SurgeryPlan(
        concept=concept,
        positive=_labels(positive, found.dataset.label_names),
        words=_listed(words),
        group_words=group_words,
        swaps=swaps,
        epsilon=epsilon,
        delta=delta,
        seed=seed,
    )
    others = () if also is None else (_other_texts(also, also_positive, also_texts, seed),)
    place = out or found.place / "surgery"
    with ProgressBars(console) as bars:
        results = run_surgery(found.model_folder, found.dataset, plan, place, others, bars)
    console.print(study_view(results))
    console.print(Text(f"written to {place}; open {place / 'surgery.html'}", style="dim"))


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _labels(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """Labels separated by commas, or one that has a comma itself."""
    return (text.strip(),) if text.strip() in known else _listed(text)


def _halves(text: str, mark: str, option: str) -> tuple[str, str]:
    one, found, other = (part.strip() for part in text.partition(mark))
    if not (one and found and other):
        raise ValueError(f"--{option} {text!r} lacks a side; write it as in --{option} muslim{mark}christian")
    return one, other


def _other_texts(path: Path, positive: str, most: int, seed: int) -> "OtherTexts":
    """The texts of another file, of which the carved test part is read, or some of it by lot."""
    from splade.data import read_text_dataset
    from splade.data.lots import rows_by_lot
    from splade.inference.labels import label_index
    from splade.surgery import OtherTexts

    if not _listed(positive):
        raise ValueError(f"--also {path} needs its positive labels, as in --also-positive BAD")
    dataset = read_text_dataset(path)
    split = dataset.test.take(rows_by_lot(len(dataset.test), most, seed))
    places = tuple(
        label_index(dataset.label_names, label, "--also-positive") for label in _labels(positive, dataset.label_names)
    )
    return OtherTexts(path.name, split, places)


if __name__ == "__main__":
    run_command(surgery)
