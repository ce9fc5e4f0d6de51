"""Kill -9 at random moments: the resumed run ends with bitwise the weights of an uninterrupted one."""

import json
import random
import signal
import subprocess
import sys
import time

import pytest

from splade.fetch import sha256_of
from tests import tiny
from tests.tiny import BAD, GOOD


@pytest.fixture
def experiment(tmp_path):
    encoder = tiny.saved_encoder(tmp_path / "encoder")
    rows = [f"{text} {i},{label}" for i in range(12) for texts, label in ((GOOD, 1), (BAD, 0)) for text in texts]
    (tmp_path / "reviews.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    config = tmp_path / "run.yaml"
    # A checkpoint after nearly every step, so that kills hit saving as well as training.
    config.write_text(
        f"data: {{dataset_name: '{tmp_path}/reviews.csv'}}\nmodel: {{name: '{encoder}', max_length: 16}}\n"
        "training: {max_epochs: 12, batch_size: 4, checkpoint_minutes: 1.0e-4}\n"
    )
    return config


def command(config, out, *more):
    return [sys.executable, "-m", "splade.scripts.run_experiment", "--config", str(config), "--out", str(out), *more]


def finish(config, out, *more):
    done = subprocess.run(command(config, out, *more), check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return sha256_of(out / "model" / "model.safetensors"), json.loads((out / "results.json").read_text())["test"]


@pytest.mark.slow
def test_twenty_kills_at_random_moments_change_no_bit(experiment, tmp_path):
    started = time.monotonic()
    whole = finish(experiment, tmp_path / "whole")
    longest = time.monotonic() - started
    chance = random.Random(0)
    kills = 0
    for attempt in range(40):
        out = tmp_path / f"killed-{attempt}"
        process = subprocess.Popen(command(experiment, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for_a_record(out, process)
        # Most of a run this small is starting up; what is left is training and saving.
        time.sleep(chance.uniform(0, 0.25 * longest))
        process.send_signal(signal.SIGKILL)
        if process.wait() == -signal.SIGKILL and not (out / "results.json").exists():
            kills += 1
            assert finish(experiment, out, "--resume") == whole
        if kills == 20:
            return
    pytest.fail(f"only {kills} kills hit a run in time")


def wait_for_a_record(out, process, seconds=60.0):
    until = time.monotonic() + seconds
    while not (out / "history.jsonl").exists() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
