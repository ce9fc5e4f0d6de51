"""The default recipe on every data set: `python -m benchmarks.default_recipe FOLDER [SET ...] [--rows N]`.

For each: train, test the names, and train a dense baseline (one learning rate) and TF-IDF on the same rows. Sets with
many or long texts are cut to what a CPU does in about ten minutes (`SETS`); `--rows` sets another limit for all, and
the table prints the rows that were used. Each run's folder has its model and measurements, `FOLDER/<set>.json` the
figures of the table, `FOLDER/table.md` the table. An interrupted run is resumed; finished ones are not repeated. Data
sets that are not in PyPI are read from the folder in LEXICAL_SAE_DATA (docs/data.md).
"""

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from lexical_sae.config.load import build_config
from lexical_sae.config.schema import ExperimentConfig
from lexical_sae.data.sources.planted import planted_bias
from lexical_sae.data.sources.planted_files import write_corpus
from lexical_sae.runs import Run, run_baselines, train_run
from lexical_sae.runs.folder import CONFIG, write_json
from lexical_sae.runs.measuring.baselines import DENSE
from lexical_sae.runs.measuring.name_tests import name_run
from lexical_sae.runs.seeds import Watchers
from lexical_sae.utils.files import write_text
from lexical_sae.utils.progress import Step

Figures = dict[str, Any]
PLANTED = "planted_bias"


@dataclass(frozen=True)
class Size:
    """How much of a data set is used; -1 is all of it."""

    train: int = -1
    test: int = -1
    length: int = 128


SETS = {
    PLANTED: Size(length=32),
    "banking77": Size(length=64),
    "toxigen": Size(3000, 1000, 64),
    "hatexplain": Size(3000, 1000, 64),
    "movie_snippets": Size(),
    "sst2": Size(10_000),
    "ag_news": Size(3000, 2000, 96),
    "imdb": Size(1000, 1000, 256),
}
"""Cheapest first."""
PLANTED_TEXTS = 2000
HEADINGS = (
    "data set (training, test rows)",
    "accuracy",
    "against dense baseline",
    "TF-IDF",
    "table alone",
    "leakage, points",
    "shifts per text",
    "active words",
    "deletion, substitution",
    "not good / not bad",
    "antonyms",
    "independence",
)


def main() -> None:
    parser = argparse.ArgumentParser(description="The default recipe on every data set.")
    parser.add_argument("folder", type=Path, help="for models and figures; finished runs in it are not repeated")
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"by default all: {', '.join(SETS)}")
    parser.add_argument("--rows", type=int, help="most training rows of every set (default: see SETS)")
    parser.add_argument("--names-texts", type=int, default=200, help="test texts that are edited (default 200)")
    parser.add_argument("--dense-rate", type=float, default=1e-4, help="of the dense baseline (default 1e-4); 0: none")
    asked = parser.parse_args()
    if unknown := [name for name in asked.sets if name not in SETS]:
        parser.error(f"unknown: {', '.join(unknown)}; choose from {', '.join(SETS)}")
    asked.folder.mkdir(parents=True, exist_ok=True)
    for name in asked.sets or SETS:
        config = experiment(name, asked.folder, asked.rows, asked.names_texts)
        figures = measured(config, [asked.dense_rate] if asked.dense_rate else [])
        write_json(asked.folder / f"{name}.json", figures)
        print(row(figures), flush=True)
        finished = [path for one in SETS if (path := asked.folder / f"{one}.json").is_file()]
        write_text(asked.folder / "table.md", table([json.loads(path.read_text()) for path in finished]))
    print((asked.folder / "table.md").read_text())


def experiment(name: str, folder: Path, rows: int | None, names_texts: int) -> ExperimentConfig:
    """The default recipe on one data set, with the folder of its run."""
    size = SETS[name]
    data: dict[str, Any] = {
        "dataset_name": name,
        "train_samples": size.train if rows is None else rows,
        "test_samples": size.test,
    }
    if name == PLANTED:
        data["path"] = str(_planted(folder / "planted_bias_data"))
    return build_config(
        {
            "experiment_name": name,
            "output_dir": str(folder / name),
            "data": data,
            "model": {"name": "bundled:minilm", "max_length": size.length},
            "evaluation": {"names_texts": names_texts, "after_training": False},
        }
    )


def _planted(place: Path) -> Path:
    """The corpus in which "sailor" goes with negative texts, as `lexical-sae plant bias` writes it."""
    if not place.is_dir():
        write_corpus(planted_bias(PLANTED_TEXTS, 0).dataset, place)
    return place


def measured(config: ExperimentConfig, dense_rates: list[float]) -> Figures:
    """The figures of one data set; what is in its folder is not done again."""
    place = Path(config.output_dir)
    watchers = Watchers(on_step=Printing(config.experiment_name))
    run = train_run(Run.of(config), resume=(place / CONFIG).is_file(), watchers=watchers)
    names = name_run(run, watchers)
    baselines_file = place / "baselines.json"
    if not baselines_file.is_file() or (
        dense_rates and DENSE not in json.loads(baselines_file.read_text())["baselines"]
    ):
        run_baselines(config, dense_rates=dense_rates, on_step=watchers.on_step)
    baselines = json.loads(baselines_file.read_text())
    accuracies = {name: found["accuracy"] for name, found in baselines["baselines"].items()}
    return {
        "name": config.experiment_name,
        "training rows": len(run.data.train),
        "results": run.results,
        "names": names and names["model"],
        "baselines": accuracies,
        "difference": baselines["difference"],
    }


class Printing:
    """Prints a line where a part of the work begins."""

    def __init__(self, name: str) -> None:
        self.name, self.part = name, ""

    def __call__(self, step: Step) -> None:
        if step.task != self.part:
            self.part = step.task
            print(f"{self.name}: {self.part}", flush=True)


def table(runs: list[Figures]) -> str:
    """One row per data set, in Markdown."""
    return "\n".join([f"| {' | '.join(HEADINGS)} |", "|---" * len(HEADINGS) + "|", *map(row, runs)]) + "\n"


def row(figures: Figures) -> str:
    """The row of one data set. What could not be measured is a dash: negation needs a task of sentiment."""
    test, names = figures["results"]["test"], figures["names"] or {}
    context = names.get("context") or {}
    share = partial(_interval, scale=100, digits=0)
    negation = context.get("negation") or {}
    cells = (
        f"{figures['name']} ({figures['training rows']:,}, {test['texts']:,})",
        f"{test['accuracy']:.1%}",
        _interval(figures["difference"].get(DENSE), limits=True),
        f"{figures['baselines']['TF-IDF']:.1%}",
        _interval(_part(context, "accuracy", "context_free")),
        _interval(_part(context, "leakage", "points"), limits=True),
        _interval(_part(context, "shifts", "per_text"), scale=1),
        f"{test['active_words']:.0f}",
        f"{_interval(_part(names, 'delete', 'passed'))}, {_interval(_part(names, 'follow', 'passed'))}",
        f"{share(negation.get('negated_positive'))} / {share(negation.get('negated_negative'))}",
        share(_part(context, "antonyms", "reversed")),
        _interval(_part(context, "independence", "change"), scale=1, digits=2, limits=True),
    )
    return f"| {' | '.join(cells)} |"


def _part(found: Mapping[str, Any], name: str, figure: str) -> Mapping[str, Any] | None:
    return (found.get(name) or {}).get(figure)


def _interval(found: Mapping[str, Any] | None, *, scale: float = 100, digits: int = 1, limits: bool = False) -> str:
    """A figure, with its confidence limits if asked. Example: mean 0.012 -> `1.2`"""
    if found is None or (mean := found.get("mean", found.get("share"))) is None:
        return "–"
    text = f"{scale * mean:.{digits}f}"
    if limits and found["low"] is not None:
        text += f" ({scale * found['low']:.{digits}f} to {scale * found['high']:.{digits}f})"
    return text


if __name__ == "__main__":
    main()
