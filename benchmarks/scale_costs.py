"""What scoring costs by rows, length, vocabulary and classes: `python -m benchmarks.scale_costs [--svg FILE]`.

The default recipe on the bundled encoder, calibrated, its table drawn at random, one process with one thread,
`--explain top`, from the input file to the files of the table. Prints milliseconds of processor time and bytes per row,
and the ratio to a dense classifier with the same encoder on the same batches.
`--memory MODEL ROWS…` prints the peak memory of whole runs instead.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from benchmarks.contenders import dense_model
from benchmarks.scoring import literal_model, review_texts
from lexical_sae.data.batches import batches, tokenize
from lexical_sae.inference.reading import BATCHES_AT_ONCE
from lexical_sae.models.persistence import saved_sha256
from lexical_sae.report.charts.svg import Axis, Series, line_chart
from lexical_sae.scale.inputs import Columns, find_inputs
from lexical_sae.scale.parts import Part, parts_of
from lexical_sae.scale.scorer import Scorer, ScoreSettings

BATCH = 32
TEXT = Columns(text="text")


@dataclass(frozen=True)
class Setting:
    """What is scored."""

    rows: int = 256
    words: int = 16
    more_words: int = 0
    classes: int = 2


PLAIN = Setting()
VARIED: dict[str, list[Setting]] = {
    "rows": [replace(PLAIN, rows=rows) for rows in (128, 256, 512, 1024)],
    "words per text": [replace(PLAIN, rows=128, words=words) for words in (8, 16, 32, 64, 128)],
    "words of the model": [replace(PLAIN, more_words=more) for more in (0, 10_000, 30_000)],
    "classes": [replace(PLAIN, classes=classes) for classes in (2, 8, 32, 128)],
}
BASE_WORDS = 30_522
"""Of the tokenizer; those of the training texts that it splits come on top, the same for every setting."""


def size(name: str, of: Setting) -> int:
    """What varies."""
    return {
        "rows": of.rows, "words per text": of.words, "words of the model": BASE_WORDS + of.more_words,
        "classes": of.classes,
    }[name]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--memory", nargs="+", metavar="ROWS")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.memory:
        model, *rows = asked.memory
        print_memory(model, [int(count) for count in rows])
        return
    lines = []
    for name, settings in VARIED.items():
        sizes, each = [], []
        for setting in settings:
            milliseconds, byte_count, ratio = cost(setting)
            sizes.append(size(name, setting))
            each.append(milliseconds)
            figures = f"{milliseconds:7.2f} ms per row, {byte_count:6.0f} bytes per row, {ratio:.2f}x dense"
            print(f"{name:20} {sizes[-1]:8,}: {figures}; load {os.getloadavg()[0]:.1f}", flush=True)
        lines.append(Series(name, [each_size / sizes[0] for each_size in sizes], each))
    if asked.svg:
        axes = Axis("times the smallest", log=True), Axis("ms of one core per row", log=True)
        told = "; ".join(
            f"{line.name}: {line.y[0]:.1f} to {line.y[-1]:.1f} ms over a factor {line.x[-1]:.1f}" for line in lines
        )
        asked.svg.write_text(line_chart("Scoring", *axes, lines, told=told))


def cost(of: Setting, rounds: int = 2) -> tuple[float, float, float]:
    """Milliseconds and bytes per row, and the ratio to dense prediction: the best of some rounds that take turns."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        model = literal_model(of.classes, of.more_words)
        saved = str(model.save_pretrained(home / "model"))
        (read,) = find_inputs([str(review_texts(home / "texts.parquet", of.rows, of.words))])
        settings = ScoreSettings(model=saved_sha256(saved), columns=TEXT, batch_size=BATCH, rows=512)
        (home / "out" / ".work").mkdir(parents=True)
        scorer, dense = Scorer(saved, settings, str(home / "out")), dense_model().eval()
        times: dict[str, float] = {"ours": float("inf"), "dense": float("inf")}
        for _ in range(rounds):
            for name, run in {"ours": scorer, "dense": lambda part: _predict(dense, model, part)}.items():
                started = time.process_time()
                for part in parts_of(read, TEXT, settings.rows):
                    run(part)
                times[name] = min(times[name], time.process_time() - started)
        written = sum(path.stat().st_size for path in (home / "out").glob("part-*.parquet"))
        return 1000 * times["ours"] / of.rows, written / of.rows, times["ours"] / times["dense"]


@torch.no_grad()
def _predict(dense: torch.nn.Module, model: object, part: Part) -> None:
    """Labels alone, of the same texts in the same batches."""
    for texts in _pools(part.texts):
        tokenized = tokenize(model.tokenizer, texts, model.max_length)  # pyright: ignore[reportAttributeAccessIssue]
        for batch in batches(tokenized, BATCH):
            dense(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits.argmax(-1).tolist()


def _pools(texts: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(texts), BATCHES_AT_ONCE * BATCH):
        yield texts[start : start + BATCHES_AT_ONCE * BATCH]


def print_memory(model: str, rows: list[int]) -> None:
    """Peak resident memory of the whole command with one worker, which scores in the process itself."""
    for count in rows:
        with tempfile.TemporaryDirectory() as folder:
            texts = review_texts(Path(folder) / "texts.parquet", count, 8)
            command = [
                sys.executable,
                "-c",
                _MEASURED,
                "score",
                model,
                str(texts),
                "--out",
                f"{folder}/out",
                "--workers",
                "1",
            ]
            started = time.monotonic()
            shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            print(f"{count:,} rows: peak {shown.split()[-1]} MB, {time.monotonic() - started:.0f} s", flush=True)


_MEASURED = """
import resource, sys
from lexical_sae.cli import app
app(sys.argv[1:], standalone_mode=False)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


if __name__ == "__main__":
    main()
