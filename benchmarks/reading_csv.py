"""Time and memory of reading 200,000 rows of CSV, beside polars: `python -m benchmarks.reading_csv`.

Each reader runs in a process of its own, on one thread. Both give Python strings; polars keeps its frame beside them.
"""

import csv
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

ROWS = 200_000


def write(path: Path) -> None:
    """Texts of fifteen made-up words; every seventh has a comma and quotes."""
    random = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for row, words in enumerate(random.integers(5000, size=(ROWS, 15))):
            text = f"{row} " + " ".join(f"word{word}" for word in words) + (', "x"' if row % 7 == 0 else "")
            writer.writerow([text, ("good", "bad")[words[0] % 2]])


def reader(kind: str) -> Callable[[Path], object]:
    """The reader, its libraries imported."""
    if kind == "polars":
        import polars as pl

        def by_polars(path: Path) -> object:
            frame = pl.read_csv(path)
            return frame, [frame[name].to_list() for name in frame.columns]

        return by_polars
    from lexical_sae.data.tables.formats import read_table

    return read_table


def main() -> None:
    if len(sys.argv) == 3:
        read = reader(sys.argv[1])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.process_time()
        kept = read(Path(sys.argv[2]))
        seconds = time.process_time() - start
        megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(f"{sys.argv[1]:12} {seconds:5.2f} s  {megabytes:4.0f} MB more at most")
        del kept
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        write(path)
        print(f"{ROWS:,} rows, {path.stat().st_size / 1e6:.0f} MB")
        for kind in ("polars", "lexical_sae"):
            alone = os.environ | {"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
            subprocess.run([sys.executable, "-m", "benchmarks.reading_csv", kind, str(path)], env=alone, check=True)


if __name__ == "__main__":
    main()
