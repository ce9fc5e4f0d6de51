"""The papers' experiment files with the bundled encoder: `python -m benchmarks.paper_files FOLDER`.

`experiments/paper/*.yaml` ask for an encoder from the hub, all rows, 50 epochs and three seeds, which takes a GPU. Here
each is run unchanged but for the encoder, `--rows` training rows (1,000 test rows), one pass, one seed, and at most
`--length` tokens per text: with IMDB's 512, a run on 320 rows was not done after twenty minutes of one core.
Experiments that two files share are trained once; finished runs are not repeated.
"""

import argparse
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lexical_sae.config.load import load_config
from lexical_sae.config.schema import ExperimentConfig
from lexical_sae.runs import setup_and_train
from lexical_sae.runs.comparing.variants import load_datasets, load_variants, with_changes
from lexical_sae.utils.files import write_text

FILES = Path(__file__).parent.parent / "experiments" / "paper"


def main() -> None:
    parser = argparse.ArgumentParser(description="The papers' experiment files with the bundled encoder.")
    parser.add_argument("folder", type=Path, help="where the figures go; what is finished there is not done again")
    parser.add_argument("--rows", type=int, default=4000, help="training rows, one pass (default 4,000)")
    parser.add_argument("--length", type=int, default=512, help="most tokens of a text (default 512, as in the files)")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for file, name, config in experiments():
        rows.append(
            {"file": file, "experiment": name, **measure(reduced(config, asked.rows, asked.length), asked.folder)}
        )
        print(_row(rows[-1]), flush=True)
        write_text(asked.folder / "paper_files.md", table(rows))


def experiments() -> Iterator[tuple[str, str, ExperimentConfig]]:
    """File, name and settings of every experiment that the papers' files describe."""
    for name in ("sst2", "ag_news", "imdb"):
        yield f"{name}.yaml", "", load_config(FILES / f"{name}.yaml")
    for study, file in (
        (load_datasets(FILES / "multi_dataset.yaml"), "multi_dataset.yaml"),
        (load_variants(FILES / "sst2_ablation.yaml", dict, kind="ablation"), "sst2_ablation.yaml"),
    ):
        for variant in study.variants:
            yield file, variant.name, variant.config


def reduced(config: ExperimentConfig, rows: int, length: int) -> ExperimentConfig:
    """The experiment in a size for one CPU."""
    smaller = {
        "model.name": "bundled:minilm",
        "model.max_length": min(config.model.max_length, length),
        "data.train_samples": rows,
        "data.test_samples": 1000,
        "training.max_epochs": 1,
        "evaluation": {"seeds": [42]},
    }
    return with_changes(config, smaller, "the smaller form")


def measure(config: ExperimentConfig, folder: Path) -> dict[str, Any]:
    """The figures of one run, from the folder if it has them."""
    what = config.model_dump_json(include={"data", "model", "training"})
    place = folder / f"{hashlib.sha256(what.encode()).hexdigest()[:16]}.json"
    if not place.is_file():
        write_text(place, json.dumps(setup_and_train(config).as_dict()))
    return json.loads(place.read_text())


def table(rows: list[dict[str, Any]]) -> str:
    """One row per experiment, in Markdown."""
    head = "| file | experiment | test accuracy | active words | tau | validation cross-entropy | lambda | seconds |"
    return "\n".join([head, "|---" * 8 + "|", *map(_row, rows)]) + "\n"


def _row(run: dict[str, Any]) -> str:
    test, tau = run["test"], run["tau_ce"]
    cells = (
        f"`{run['file']}`",
        run["experiment"],
        f"{test['accuracy']:.1%}",
        f"{test['active_words']:,.0f}",
        "–" if tau is None else f"{tau:.3f}",
        f"{run['validation']['ce']:.3f}",
        f"{run['lambda']:.2f}",
        f"{run['seconds']:.0f}",
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
