"""Time and memory of `lexical-sae audit` on an invented table: `python -m benchmarks.audit_cost [ROWS] [RUNS]`.

The whole command is measured, from its start to its last file: groups, periods, drift, labels, page and CSVs.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

from benchmarks.scored_table import Invented, write_scored


def main(rows: int = 1_000_000, runs: int = 3) -> None:
    with tempfile.TemporaryDirectory() as folder:
        scored = write_scored(
            Path(folder) / "scored", Invented(rows, more_often={"recall": 0.02}, planted_from=date(2026, 7, 1))
        )
        size = sum(path.stat().st_size for path in scored.glob("*.parquet"))
        print(f"{rows:,} rows of 10 words, {size / rows:.0f} bytes each")
        for run in range(1, runs + 1):
            command = [sys.executable, "-m", "lexical_sae.cli", "audit", str(scored), "--by", "region"]
            command += ["--since", "2026-07-01", "--out", str(Path(folder) / "audit")]
            load, before, started = os.getloadavg()[0], resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            seconds, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            peak = after.ru_maxrss / 2**20
            print(f"run {run}: {seconds:.1f} s, {cpu:.1f} s of CPU, peak {peak:.2f} GB; load at its start {load:.1f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
