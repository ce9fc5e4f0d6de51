import json
import signal
import subprocess
import sys

import pytest

from splade import cli
from splade.models.persistence import from_pretrained, save_pretrained
from splade.training.loop import Trainer
from tests import tiny

ROWS = [("a good film", "pos"), ("a very good movie", "pos"), ("great acting", "pos"), ("wonderful plot", "pos")]
ROWS += [("a bad film", "neg"), ("a boring movie", "neg"), ("awful acting", "neg"), ("terrible plot", "neg")]


@pytest.fixture
def run(monkeypatch, capsys):
    """The command as a person types it: exit code, standard output, standard error."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["lexical-sae", *arguments])
        monkeypatch.setenv("COLUMNS", "200")
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        output = capsys.readouterr()
        return code, output.out, output.err

    return call


@pytest.fixture
def encoder(tmp_path):
    return tiny.saved_encoder(tmp_path / "encoder")


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "my reviews.csv"
    lines = [f"{text} {i % 7},{label}" for i, (text, label) in enumerate(ROWS * 8)]
    path.write_text("\n".join(["review,verdict", *lines]) + "\n")
    return path


@pytest.fixture
def tiny_run(encoder, csv, tmp_path):
    """An experiment of a few steps on a tiny encoder."""
    path = tmp_path / "run.yaml"
    path.write_text(
        f"seed: 1\ndata: {{dataset_name: '{csv}'}}\nmodel: {{name: '{encoder}', max_length: 16}}\n"
        "training: {max_epochs: 2, batch_size: 16}\n"
    )
    return path


def test_training_on_an_own_file_leaves_a_run_and_a_model_that_explains(run, tiny_run, tmp_path):
    code, output, error = run("train", "--config", str(tiny_run), "--out", str(tmp_path / "run"))
    assert (code, error) == (0, "")
    for expected in ("accuracy", "active words", "identity error", "verdict", "everything is in"):
        assert expected in output
    left = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"resolved_config.yaml", "results.json", "history.jsonl", "environment.json", "model"} <= left
    assert "checkpoint" not in left
    assert from_pretrained(tmp_path / "run" / "model").labels == {"classify": ("neg", "pos")}
    code, output, _ = run("explain", str(tmp_path / "run" / "model"), "a good film", "", "--top", "2")
    assert code == 0
    assert "a good film" in output
    assert output.count("bias at this input") == 2


def test_errors_are_one_sentence_and_a_non_zero_exit(run, tmp_path):
    for arguments, message in [
        (("explain", str(tmp_path), "text"), "is not a saved model"),
        (("train",), "give either a data set"),
        (("train", "no_such_set", "--out", str(tmp_path / "run")), "is unknown"),
        (("train", str(tmp_path / "none.csv"), "--out", str(tmp_path / "run")), "no file or folder"),
        (("train", "--config", str(tmp_path / "none.yaml")), "no experiment file"),
    ]:
        code, _, error = run(*arguments)
        assert code == 1
        assert message in error
        assert "Traceback" not in error


def test_text_and_labels_from_outside_are_not_obeyed_by_the_terminal(run, tmp_path):
    save_pretrained(tiny.model(), tmp_path / "model")
    code, output, _ = run("explain", str(tmp_path / "model"), "[bold]good[/bold] \x1b[31mfilm\x07")
    assert code == 0
    assert "[bold]good[/bold]" in output
    assert "\x07" not in output


def test_version_and_help(run):
    assert run("--version")[:2] == (0, "lexical-sae 0.1.0\n")
    code, output, _ = run("--help")
    assert code == 0
    assert all(command in output for command in ("quickstart", "train", "explain", "fit-lexical-head"))


def test_help_does_not_wait_for_torch():
    script = """
import sys
from splade.cli import main
sys.argv = ["lexical-sae", "--help"]
try:
    main()
except SystemExit:
    sys.exit("torch" in sys.modules)
"""
    result = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert result.returncode == 0
    assert "quickstart" in result.stdout


def test_a_folder_that_holds_a_run_is_refused_before_training(run, csv, tmp_path, monkeypatch):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "results.json").write_text("{}")
    monkeypatch.setattr("splade.pipelines.setup_and_train", lambda *_, **__: pytest.fail("training began"))
    code, _, error = run("train", str(csv), "--out", str(tmp_path / "taken"))
    assert code == 1
    assert "already holds a run" in error
    assert "--resume" in error


def test_ctrl_c_saves_says_so_and_fails_and_the_run_can_go_on(run, tiny_run, tmp_path, monkeypatch):
    seen = []
    plain_step = Trainer._take_step

    def take_step(self, rows):
        plain_step(self, rows)
        seen.append(self.step)
        if len(seen) == 3:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Trainer, "_take_step", take_step)
    code, _, error = run("train", "--config", str(tiny_run), "--out", str(tmp_path / "run"))
    assert code == 130
    assert "stopped after step 3" in error
    assert "--resume" in error
    code, output, error = run("train", "--config", str(tiny_run), "--out", str(tmp_path / "run"), "--resume")
    assert (code, error) == (0, "")
    assert seen[:4] == [1, 2, 3, 4]
    history = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
    assert [record["step"] for record in history if "step" in record] == sorted(set(seen))
    assert "accuracy" in output
    code, _, error = run("train", "--config", str(tiny_run), "--out", str(tmp_path / "run"))
    assert (code, "already holds a run" in error) == (1, True)


def test_several_seeds_give_a_mean_with_its_interval(run, tiny_run, tmp_path):
    tiny_run.write_text(tiny_run.read_text().replace("seed: 1", "evaluation: {seeds: [1, 2]}"))
    code, output, _ = run("train", "--config", str(tiny_run), "--out", str(tmp_path / "run"))
    assert code == 0
    assert "Mean of 2 seeds" in output
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert [r["seed"] for r in results["runs"]] == [1, 2]
    accuracy = results["mean"]["accuracy"]
    assert accuracy["low"] <= accuracy["mean"] <= accuracy["high"]
    assert from_pretrained(tmp_path / "run" / "seed-2" / "model").labels == {"classify": ("neg", "pos")}


def test_columns_beside_a_config_are_refused_not_ignored(run, tmp_path):
    (tmp_path / "run.yaml").write_text("seed: 1\n")
    code, _, error = run("train", "--config", str(tmp_path / "run.yaml"), "--text-column", "x")
    assert code == 1
    assert "text_column" in error
