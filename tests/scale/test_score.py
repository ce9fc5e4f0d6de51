import signal
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from lexical_sae.cli import app
from lexical_sae.inference import explain
from lexical_sae.models.persistence import saved_sha256
from lexical_sae.scale.inputs import Columns, find_inputs
from lexical_sae.scale.local import score_locally
from lexical_sae.scale.score import score_files
from lexical_sae.scale.scorer import Scorer, ScoreSettings
from lexical_sae.utils.errors import MissingPackageError, SavedFileError, SettingsError
from tests.literal import TEXTS, literal_model

ROWS = 23


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return str(literal_model().save_pretrained(tmp_path_factory.mktemp("saved") / "model"))


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "texts.parquet"
    rows = [{"text": f"{TEXTS[i % 5]} {'good ' * (i % 4)}" if i % 7 else None, "n": i} for i in range(ROWS)]
    pq.write_table(pa.Table.from_pylist(rows), path)
    return str(path)


def settings(saved, **others):
    columns = Columns(text="text", kept=("n",))
    return ScoreSettings(model=saved_sha256(saved), columns=columns, rows=4, batch_size=3, **others)


def run(saved, texts, out, **others):
    return score_files(saved, find_inputs([texts]), settings(saved), str(out), **others)


def table(out):
    return pa.concat_tables([pq.read_table(path) for path in sorted(out.glob("part-*.parquet"))])


def rejected(out):
    return pa.concat_tables([pq.read_table(path) for path in sorted((out / "rejected").glob("*.parquet"))])


@pytest.fixture(scope="module")
def whole(saved, texts, tmp_path_factory):
    out = tmp_path_factory.mktemp("scored") / "whole"
    run(saved, texts, out)
    return out


def interrupted(after):
    """An engine that stops, with a part that is done and not reported, as a kill leaves it."""

    def engine(folder, chosen, out, parts, workers):
        for number, done in enumerate(score_locally(folder, chosen, out, parts, workers)):
            if number == after:
                raise KeyboardInterrupt
            yield done

    return engine


def test_every_row_is_scored_or_rejected_once(whole, texts):
    given = pq.read_table(texts).to_pylist()
    scored, bad = table(whole).to_pylist(), rejected(whole).to_pylist()
    assert [row["row_id"] for row in scored] == [i for i, row in enumerate(given) if row["text"]]
    assert [row["row_id"] for row in bad] == [i for i, row in enumerate(given) if not row["text"]]
    assert [row["n"] for row in scored] == [row["row_id"] for row in scored]
    assert {row["reason"] for row in bad} == {"no text"}


def test_rows_are_what_explain_says(whole, texts, saved):
    model = literal_model()
    given = [row["text"] for row in pq.read_table(texts).to_pylist() if row["text"]]
    for row, why in zip(table(whole).to_pylist(), explain(model, given), strict=True):
        assert row["prediction"] == why.label
        assert row["model"] == saved_sha256(saved)
        assert {word["word"] for word in row["words"]} == {word.word for word in why.listed().words}


@pytest.mark.parametrize("after", [0, 2, 5])
def test_an_interrupted_run_resumes_to_the_same_table(saved, texts, whole, tmp_path, after):
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        run(saved, texts, out, engine=interrupted(after))
    assert len(list(out.glob("part-*.parquet"))) == after + 1
    again = run(saved, texts, out, resume=True)
    assert table(out).equals(table(whole))
    assert rejected(out).equals(rejected(whole))
    assert (again.rows, again.rejected, again.parts) == (19, 4, 6)


def test_a_table_is_not_mixed_with_another(saved, texts, whole, tmp_path):
    with pytest.raises(SavedFileError, match="not empty"):
        run(saved, texts, whole)
    with pytest.raises(SavedFileError, match="other settings .*top: 10 then, 3 now"):
        score_files(saved, find_inputs([texts]), settings(saved, top=3), str(whole), resume=True)
    with pytest.raises(SavedFileError, match="nothing to resume"):
        run(saved, texts, tmp_path / "new", resume=True)
    with pytest.raises(SavedFileError, match="same folder"):
        Scorer(saved, settings(saved).model_copy(update={"model": "0" * 64}), str(tmp_path))


def test_the_command_says_what_it_wrote(saved, texts, tmp_path):
    arguments = ["score", saved, texts, "--out", str(tmp_path / "out"), "--workers", "1", "--explain", "none"]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    assert "19 rows in 1 files" in shown.output
    assert "4 without a usable text" in shown.output
    assert set(table(tmp_path / "out").column("words").to_pylist()) == {None}


@pytest.mark.slow
def test_a_killed_run_of_two_processes_resumes_to_the_same_table(saved, texts, whole, tmp_path):
    """Killed at three moments, workers and all; what they had begun is done again."""
    out = tmp_path / "out"
    command = [sys.executable, "-m", "lexical_sae.cli", "score", saved, texts, "--out", str(out), "--workers", "2"]
    command += ["--rows-per-part", "4", "--batch-size", "3", "--keep-columns", "n"]
    for parts in (1, 2, 4):
        process = subprocess.Popen(command)
        while len(list(out.glob("part-*.parquet"))) < parts and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if "--resume" not in command:
            command.append("--resume")
    subprocess.run(command, check=True)
    assert table(out).equals(table(whole))
    assert rejected(out).equals(rejected(whole))


def test_engines_are_named_and_ray_is_asked_for_where_it_is_missing(saved, texts, tmp_path, monkeypatch):
    arguments = ["score", saved, texts, "--out", str(tmp_path / "out")]
    with pytest.raises(SettingsError, match="--engine 'rya' is unknown; did you mean 'ray'"):
        CliRunner().invoke(app, [*arguments, "--engine", "rya"], catch_exceptions=False)
    with pytest.raises(SettingsError, match="are for --engine ray"):
        CliRunner().invoke(app, [*arguments, "--gpus", "1"], catch_exceptions=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "lexical_sae.scale.on_ray", raising=False)
    with pytest.raises(MissingPackageError, match="needs ray: pip install 'lexical-sae\\[ray\\]'"):
        CliRunner().invoke(app, [*arguments, "--engine", "ray"], catch_exceptions=False)
    assert not (tmp_path / "out").exists()
