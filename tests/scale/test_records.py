import math

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lexical_sae.inference import explain
from lexical_sae.scale.records import record_batch
from lexical_sae.scale.schema import FIELDS, About, Places, kept_name, read_about
from lexical_sae.utils.errors import SavedFileError
from tests.literal import TEXTS, literal_model


@pytest.fixture(scope="module")
def model():
    return literal_model()


def about_of(model, **settings):
    return About(model="abc", labels=tuple(model.labels["classify"]), **settings)


def places(count=len(TEXTS), **more):
    return Places("a.csv", pa.array(range(count), pa.int64()), pa.array(range(2, count + 2), pa.int64()), **more)


def test_bias_words_and_rest_sum_to_what_is_explained(model):
    made = record_batch(explain(model, TEXTS), places(), about_of(model, top=2)).to_pylist()
    assert any(row["num_words"] > len(row["words"]) > 0 for row in made)
    for row in made:
        parts = [row["bias"], row["rest"], *(word["contribution"] for word in row["words"])]
        assert math.fsum(parts) == pytest.approx(row["explained"], abs=1e-5)
        assert len(row["words"]) <= 2


def test_rows_hold_what_explain_says(model):
    found = explain(model, TEXTS)
    made = record_batch(found, places(), about_of(model)).to_pylist()
    for why, row in zip(found, made, strict=True):
        assert row["prediction"] == why.label
        assert row["probabilities"] == pytest.approx([share for _, share in why.probabilities])
        assert row["warnings"] == [warning.kind for warning in why.warnings]
        for word, own in zip(row["words"], why.listed().words, strict=True):
            assert (word["word"], word["start"], word["end"]) == (own.word, own.start, own.end)
            assert word["contribution"] == pytest.approx(own.contribution)
            assert word["if_removed"] == pytest.approx(own.if_removed)
            assert word["default"] + word["context"] == pytest.approx(own.contribution)


def test_without_words_the_decision_stays(model):
    rows = record_batch(explain(model, TEXTS, effects=False), places(), about_of(model, explain="none")).to_pylist()
    assert {row["words"] for row in rows} == {None}
    assert {row["rest"] for row in rows} == {None}
    assert [row["prediction"] for row in rows] == [why.label for why in explain(model, TEXTS)]


def test_a_file_says_what_it_is_and_duckdb_reads_it(model, tmp_path):
    kept = pa.RecordBatch.from_pydict({"label": ["x"] * len(TEXTS), "region": ["north"] * len(TEXTS)})
    about = about_of(model, top=3, kept={"label": kept_name("label"), "region": kept_name("region")})
    given = pa.array(["positive"] * len(TEXTS))
    made = record_batch(explain(model, TEXTS), places(labels=given), about, kept)
    pq.write_table(pa.Table.from_batches([made]), tmp_path / "a.parquet")
    assert read_about(tmp_path / "a.parquet") == about
    query = (
        f"select region, w.word, sum(w.contribution) from (select region, unnest(words) w from '{tmp_path}/*.parquet')"
    )
    found = duckdb.sql(f"{query} group by all order by abs(sum(w.contribution)) desc").fetchall()
    assert {region for region, _, _ in found} == {"north"}
    assert "good" in {word for _, word, _ in found}
    assert made.schema.names[: len(FIELDS)] == [field.name for field in FIELDS]
    assert made.schema.names[len(FIELDS) :] == ["original_label", "region"]


def test_foreign_files_and_other_versions_are_refused(model, tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "foreign.parquet")
    with pytest.raises(SavedFileError, match="was not written by"):
        read_about(tmp_path / "foreign.parquet")
    later = record_batch(explain(model, TEXTS), places(), about_of(model, version=99))
    pq.write_table(pa.Table.from_batches([later]), tmp_path / "later.parquet")
    with pytest.raises(SavedFileError, match="version 99"):
        read_about(tmp_path / "later.parquet")
    (tmp_path / "text.parquet").write_text("no")
    with pytest.raises(SavedFileError, match="not a Parquet file"):
        read_about(tmp_path / "text.parquet")
