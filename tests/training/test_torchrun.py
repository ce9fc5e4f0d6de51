"""The command line under `torchrun`: one run, one folder, one voice; and what is left when a process is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import tiny
from tests.tiny import BAD, GOOD

pytestmark = pytest.mark.slow
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    encoder = tiny.saved_encoder(folder / "encoder")
    rows = [f"{text} {i},{label}" for i in range(12) for texts, label in ((GOOD, 1), (BAD, 0)) for text in texts]
    (folder / "reviews.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    config = folder / "run.yaml"
    config.write_text(
        f"recipe: cajt\ndata: {{dataset_name: '{folder}/reviews.csv'}}\n"
        f"model: {{name: '{encoder}', max_length: 16}}\n"
        "training: {max_epochs: 4, batch_size: 16, learning_rate: 1.0e-3, encoder_dropout: 0.0, "
        "checkpoint_minutes: 1.0e-9}\nevaluation: {after_training: false}\n"
    )
    return config


def train(config, out, *more, launcher=(sys.executable,)):
    command = [*launcher, "-m", "lexical_sae.cli", "train", "--config", config, "--out", out, "--device", "cpu", *more]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def finished(process) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out


def steps(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]


def test_two_processes_make_one_run_and_it_is_that_of_one(config, tmp_path):
    said = finished(train(config, tmp_path / "two", launcher=TORCHRUN))
    assert said.count("everything is in") == 1
    finished(train(config, tmp_path / "one"))
    ours, theirs = steps(tmp_path / "two"), steps(tmp_path / "one")
    assert len(ours) == len(theirs) > 10
    assert [step.get("ce") for step in ours[:5]] == pytest.approx([step.get("ce") for step in theirs[:5]], rel=1e-3)
    assert (tmp_path / "two" / "report.html").is_file()
    assert (tmp_path / "two" / "model" / "model.safetensors").is_file()


def test_a_killed_process_ends_the_run_and_one_process_resumes_it(config, tmp_path):
    out = tmp_path / "killed"
    running = train(config, out, launcher=TORCHRUN)
    while not (out / "checkpoint").is_dir() and running.poll() is None:
        time.sleep(0.02)
    workers = subprocess.run(["pgrep", "-P", str(running.pid)], capture_output=True, text=True, check=True)
    os.kill(int(workers.stdout.split()[-1]), signal.SIGKILL)
    running.communicate(timeout=120)
    assert running.returncode != 0
    assert not (out / "results.json").exists()
    finished(train(config, out, "--resume"))
    assert (out / "results.json").is_file()


def test_an_error_of_the_first_process_ends_the_others(config, tmp_path):
    finished(train(config, tmp_path / "taken"))
    again = train(config, tmp_path / "taken", launcher=TORCHRUN)
    _, err = again.communicate(timeout=120)
    assert again.returncode != 0
    assert "already holds a run" in err
