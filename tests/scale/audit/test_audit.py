"""What DuckDB says, beside the same questions answered row by row."""

import json
import math
import re
from collections import defaultdict
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from benchmarks.scored_table import Invented, write_scored
from lexical_sae.cli import app
from lexical_sae.models.persistence import saved_sha256
from lexical_sae.report.sections import sections_html
from lexical_sae.scale.audit.audit import audit
from lexical_sae.scale.audit.files import write_csvs, write_gauges
from lexical_sae.scale.audit.page import audit_page
from lexical_sae.scale.audit.settings import Asked
from lexical_sae.scale.inputs import Columns, find_inputs
from lexical_sae.scale.schema import About, scored_schema
from lexical_sae.scale.score import score_files
from lexical_sae.scale.scorer import ScoreSettings
from lexical_sae.utils.errors import DataError, SavedFileError, SettingsError
from tests.literal import TEXTS, literal_model
from tests.report.test_policy import Read

SINCE = datetime(2026, 7, 1)


@pytest.fixture(scope="module")
def found(planted):
    return audit(planted, Asked(by="region", since=SINCE))


@pytest.fixture(scope="module")
def rows(planted):
    return [row for path in sorted(planted.glob("*.parquet")) for row in pq.read_table(path).to_pylist()]


def late(rows):
    return [row for row in rows if row["date"] >= SINCE.date()]


def contributions(rows, *keys):
    """Per key and word the contributions in the rows that list it."""
    made = defaultdict(list)
    for row in rows:
        for word in row["words"]:
            made[*(row[key] for key in keys), word["word"]].append(word["contribution"])
    return made


def records(columns):
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def test_words_of_a_class_are_counted_as_row_by_row(found, rows):
    mine = contributions(late(rows), "prediction")
    texts = {name: sum(row["prediction"] == name for row in late(rows)) for name in found.labels}
    shown = records(found.words)
    assert len(shown) > 500
    for word in shown:
        values = mine[word["prediction"], word["word"]]
        assert (word["listed"], word["texts"]) == (len(values), texts[word["prediction"]])
        assert word["mean"] == pytest.approx(np.mean(values), abs=1e-6)
        assert word["per_text"] == pytest.approx(sum(values) / texts[word["prediction"]], abs=1e-6)
        assert word["per_text_low"] < word["per_text"] < word["per_text_high"]


def test_words_of_groups_and_periods_are_those_of_their_rows(found, rows):
    mine = contributions(late(rows), "prediction", "region")
    for word in records(found.groups.words)[::50]:
        assert word["mean"] == pytest.approx(np.mean(mine[word["prediction"], word["grp"], word["word"]]), abs=1e-6)
    by_month = contributions([{**row, "month": row["date"].replace(day=1)} for row in rows], "prediction", "month")
    periods = records(found.periods.words)
    assert {word["period"].astype(object).month for word in periods} == set(range(1, 13))
    for word in periods[::20]:
        month = word["period"].astype(object).date()
        assert word["listed"] == len(by_month[word["prediction"], month, word["word"]])


def test_shares_of_decisions_and_warnings_are_those_of_the_rows(found, rows):
    for name, columns, has in (
        ("prediction", found.groups.decisions, lambda row, name: row["prediction"] == name),
        ("kind", found.groups.unusual, lambda row, kind: kind in warnings_of(row)),
    ):
        for shown in records(columns):
            here = [row for row in late(rows) if row["region"] == shown["grp"]]
            assert (shown["count"], shown["texts"]) == (sum(has(row, shown[name]) for row in here), len(here))
    assert set(found.unusual["kind"]) == {"any", "cut", "unknown_words"}


def warnings_of(row):
    return {*row["warnings"], *(["any"] if row["warnings"] else []), *(["cut"] if row["tokens_cut"] else [])}


def test_suspected_labels_are_wrong_and_the_words_say_why(found, rows):
    names = found.labels
    usual = {
        name: np.mean([row["probabilities"][i] for row in late(rows) if row["label"] == name])
        for i, name in enumerate(names)
    }
    wrong = [row for row in late(rows) if row["label"] != row["prediction"]]
    expected = {row["row_id"] for row in wrong if row["probability"] >= usual[row["prediction"]]}
    assert found.suspects.disagree == len(wrong)
    assert found.suspects.suspected == len(expected) > 20
    by_id = {row["row_id"]: row for row in rows}
    assert {row.row_id for row in found.suspects.rows} == expected
    own = [row.probability_of_label for row in found.suspects.rows]
    assert own == sorted(own)
    for suspect in found.suspects.rows:
        listed = {word["word"]: word["contribution"] for word in by_id[suspect.row_id]["words"]}
        assert all(c > 0 and listed[word] == pytest.approx(c) for word, c in suspect.words)


def test_files_hold_what_was_found_and_prometheus_reads_them(found, tmp_path):
    written = {path.stem: path for path in write_csvs(found, tmp_path)}
    assert {"classes", "words", "groups_words", "periods_words", "drift_words", "unusual", "labels"} <= set(written)
    assert written["words"].read_text().splitlines()[0].startswith('"class","word","listed","texts","share"')
    assert len(written["labels"].read_text().splitlines()) == len(found.suspects.rows) + 1
    families = {f.name: f for f in text_string_to_metric_families(write_gauges(found, tmp_path / "a.prom").read_text())}
    assert {family.type for family in families.values()} == {"gauge"}
    changes = {s.labels["word"]: s.value for s in families["lexical_sae_audit_word_change"].samples}
    assert set(changes) == {"recall", "word12"}
    assert families["lexical_sae_audit_texts"].samples[0].value == found.rows


def test_a_page_holds_no_markup_from_the_table_and_a_cell_no_formula(tmp_path):
    nasty = '<b onclick="x">"=1+1\\'
    write_scored(tmp_path / "scored", Invented(600, vocabulary=50, more_often={"=HYPERLINK(1)": 0.3, nasty: 0.3}))
    found = audit(tmp_path / "scored", Asked(by="region", against=str(tmp_path / "scored")))
    html = sections_html(audit_page(found))
    page = Read(html)
    assert "style-src 'sha256-" in page.policy
    assert not {"style", "onclick"} & page.names
    assert "&lt;b onclick" in html
    write_csvs(found, tmp_path / "out")
    text = (tmp_path / "out" / "words.csv").read_text()
    assert "'=HYPERLINK(1)" in text
    assert not re.search(r'(^|,)"?=HYPERLINK', text, re.M)


def test_the_command_writes_page_tables_and_gauges(planted, tmp_path):
    arguments = ["audit", str(planted), "--by", "region", "--since", "2026-07-01", "--out", str(tmp_path / "out")]
    shown = CliRunner().invoke(app, [*arguments, "--gauges", str(tmp_path / "node.prom")])
    assert shown.exit_code == 0, shown.output
    assert "recall" in shown.output
    assert "guessed: time column 'date'" in shown.output
    html = (tmp_path / "out" / "audit.html").read_text()
    for heading in ("Words of each class", "By region", "Over time", "Drift", "Unusual texts", "Labels"):
        assert f"<h2>{heading}</h2>" in html
    assert (tmp_path / "node.prom").is_file()
    assert (tmp_path / "out" / "groups_words.csv").is_file()


def test_what_score_writes_can_be_audited(tmp_path):
    model = str(literal_model().save_pretrained(tmp_path / "model"))
    given = [{"text": text, "day": f"2026-0{1 + i % 3}-05", "label": "positive"} for i, text in enumerate(TEXTS * 9)]
    pq.write_table(
        pa.Table.from_pylist([*given, {"text": "good", "day": "some day", "label": "odd"}]), tmp_path / "t.parquet"
    )
    columns = Columns(text="text", label="label", kept=("day",))
    settings = ScoreSettings(model=saved_sha256(model), columns=columns, rows=16)
    score_files(model, find_inputs([str(tmp_path / "t.parquet")]), settings, str(tmp_path / "scored"))
    found = audit(tmp_path / "scored")
    assert found.rows == len(given) + 1
    assert found.suspects.unknown == 1
    assert found.periods.column == "day"
    assert "1 rows have no date in column 'day'" in " ".join(found.notes)
    named = records(found.words)
    assert {"good", "boring"} & {word["word"] for word in named}
    assert all(math.isfinite(word["per_text"]) for word in named)


def test_questions_that_cannot_be_answered_say_what_to_do(planted, tmp_path):
    with pytest.raises(DataError, match="no column 'regoin'; did you mean 'region'"):
        audit(planted, Asked(by="regoin"))
    with pytest.raises(DataError, match="has 8000 values"):
        audit(planted, Asked(by="row_id"))
    with pytest.raises(DataError, match="no row is in the period"):
        audit(planted, Asked(since=datetime(2030, 1, 1)))
    with pytest.raises(DataError, match="no row to compare with"):
        audit(planted, Asked(since=datetime(2020, 1, 1)))
    with pytest.raises(DataError, match="is FLOAT; the time needs dates"):
        audit(planted, Asked(time="probability"))
    with pytest.raises(SavedFileError, match="holds no scored rows"):
        audit(tmp_path)
    with pytest.raises(DataError, match="no row has a date in column 'region'"):
        audit(planted, Asked(time="region"))
    with pytest.raises(SettingsError, match="not before until"):
        Asked(since=SINCE, until=SINCE)
    about = About(model="a", labels=("x",), explain="none")
    pq.write_table(scored_schema(about).empty_table(), tmp_path / "part-00000-000000.parquet")
    with pytest.raises(SavedFileError, match="has no words; score its texts again with --explain top"):
        audit(tmp_path)


def test_a_table_of_three_rows_has_a_page(tmp_path):
    write_scored(tmp_path, Invented(3, vocabulary=50))
    found = audit(tmp_path, Asked(by="region", time="date", against=str(tmp_path)))
    assert found.rows == 3
    assert "none" in sections_html(audit_page(found))
    assert found.drift.found == 0


def test_an_unfinished_table_is_audited_and_says_so(planted, tmp_path):
    for path in planted.glob("*.parquet"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "manifest.json").write_text(json.dumps({"totals": None}))
    assert "not finished" in audit(tmp_path).notes[0]


def test_periods_are_cut_where_the_calendar_cuts_them(planted):
    quarters = audit(planted, Asked(time="date", every="quarter", until=datetime(2026, 4, 1)))
    assert quarters.last.date() == date(2026, 3, 31)
    assert [str(begin)[:10] for begin in np.unique(quarters.periods.words["period"])] == [
        "2026-01-01", "2026-04-01", "2026-07-01", "2026-10-01",
    ]  # fmt: skip
