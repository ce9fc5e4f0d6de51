"""The queries of the page run as they are written, and agree."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.scored_table import Invented, write_scored

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"


def test_the_three_queries_find_the_same_words(tmp_path, monkeypatch):
    write_scored(tmp_path / "scored", Invented(3000, vocabulary=200), rows_per_part=1000)
    # What else `score` leaves there.
    (tmp_path / "scored" / "manifest.json").write_text("{}")
    (tmp_path / "scored" / "rejected").mkdir()
    pq.write_table(pa.table({"row_id": [1], "reason": ["no text"]}), tmp_path / "scored" / "rejected" / "part.parquet")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)):
        exec(compile(block, f"{PAGE.name}, block {number + 1}", "exec"), names)
    found = [(word, texts) for word, texts, _ in names["by_duckdb"]]
    assert len(found) == 10
    assert [(row["word"], row["texts"]) for row in names["by_polars"].to_dicts()] == found
    assert list(names["by_pandas"]["texts"].items()) == found
    totals = [total for _, _, total in names["by_duckdb"]]
    assert names["by_polars"]["total"].to_list() == pytest.approx(totals, rel=1e-4)
    assert names["by_pandas"]["total"].tolist() == pytest.approx(totals, rel=1e-4)
