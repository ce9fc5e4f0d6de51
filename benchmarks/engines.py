"""Rows per second of `score` by engine and number of workers: `python -m benchmarks.engines [ROWS]`.

The default recipe on the bundled encoder, its table drawn at random. Runs take turns, and only the time from the first
part that is done to the last counts: starting Ray or processes and loading models is printed, and not in the ratios.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.scoring import literal_model, review_texts
from lexical_sae.models.persistence import saved_sha256
from lexical_sae.scale.inputs import Columns, find_inputs
from lexical_sae.scale.local import score_locally
from lexical_sae.scale.on_ray import RayEngine
from lexical_sae.scale.score import Engine, score_files
from lexical_sae.scale.scorer import ScoreSettings

ENGINES: dict[str, Engine] = {"local": score_locally, "ray": RayEngine()}
ROUNDS = 2


def main(rows: int = 3000) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        model = str(literal_model().save_pretrained(home / "model"))
        texts = str(review_texts(home / "texts.parquet", rows, words=16))
        for turn in range(ROUNDS):
            for name, engine in ENGINES.items():
                rates = {}
                for workers in (1, 2):
                    load = os.getloadavg()[0]
                    rates[workers], start = rate(model, texts, home / f"{name}{workers}{turn}", engine, workers)
                    figures = f"{rates[workers]:7.1f} rows/s, {start:5.1f} s until the first part; load {load:.1f}"
                    print(f"{name:6} {workers} workers: {figures}", flush=True)
                print(f"{name:6} two against one: {rates[2] / rates[1]:.2f}x", flush=True)


def rate(model: str, texts: str, out: Path, engine: Engine, workers: int) -> tuple[float, float]:
    """Rows per second after the first part, and the seconds until it was done."""
    settings = ScoreSettings(model=saved_sha256(model), columns=Columns(text="text"), rows=128)
    began, times, counts = time.monotonic(), [], []

    def watched(*asked):  # noqa: ANN002, ANN202
        for done in engine(*asked):
            times.append(time.monotonic())
            counts.append(done.rows)
            yield done

    score_files(model, find_inputs([texts]), settings, str(out), engine=watched, workers=workers)
    return sum(counts[1:]) / (times[-1] - times[0]), times[0] - began


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
