"""Kill -9 at random moments: the resumed run ends with bitwise the weights and the history of an uninterrupted one.

Some moments are drawn by the clock, from the start of the process to its end, whatever goes on then. Others are drawn
among the calls that are made inside one function, so that saving a checkpoint, validating and saving the model are each
hit for certain.
"""

import json
import multiprocessing
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from lexical_sae.config.load import load_config
from lexical_sae.runs import run_experiment
from lexical_sae.utils.downloads import sha256_of
from lexical_sae.utils.files import write_json
from tests import tiny
from tests.tiny import BAD, GOOD

PLACES = ("save_checkpoint", "Criterion.validate", "save_pretrained")
KILLS = 5
"""In each place, and as many by the clock."""
RECIPES = ("neighbours", "cajt", "cis")
"""The second averages weights in its optimiser and remembers how frequent words were; the third looks for its rate."""

# Forked from a server that has imported everything: a run begins at once, and is a process of its own all the same.
processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload([__name__])


class CallsInside:
    """Counts what one function calls, Python and C alike, and kills the process at the call that is named."""

    def __init__(self, function: str, deadly: int | None = None) -> None:
        self.function, self.deadly = function, deadly
        self.depth = self.count = 0

    def __call__(self, frame, event, _) -> None:
        if frame.f_code.co_qualname == self.function and event in ("call", "return"):
            self.depth += 1 if event == "call" else -1
        elif self.depth and event in ("call", "c_call"):
            self.count += 1
            if self.count == self.deadly:
                os.kill(os.getpid(), signal.SIGKILL)


def train(config: Path, out: Path, resume: bool, watches: tuple[CallsInside, ...]) -> None:
    """What a process does; the numbers of calls come last."""
    torch.set_num_threads(1)
    settings = load_config(config).model_copy(update={"output_dir": str(out)})
    if watches:
        sys.setprofile(lambda *event: [watch(*event) for watch in watches] and None)
    run_experiment(settings, resume=resume, device="cpu")
    sys.setprofile(None)
    write_json(out / "calls.json", {watch.function: watch.count for watch in watches})


def start(config: Path, out: Path, *watches: CallsInside, resume: bool = False):
    process = processes.Process(target=train, args=(config, out, resume, watches))
    process.start()
    return process


def outcome(folder: Path) -> tuple[str, str, str]:
    """All that two runs must share to the last bit."""
    test = json.loads((folder / "results.json").read_text())["test"]
    return sha256_of(folder / "model" / "model.safetensors"), sha256_of(folder / "history.jsonl"), json.dumps(test)


class Whole(NamedTuple):
    """An uninterrupted run."""

    config: Path
    outcome: tuple[str, str, str]
    seconds: float
    """From the start of the process to its end."""
    calls: dict[str, int]
    """Calls made inside each place."""


@pytest.fixture(scope="module")
def whole(request, tmp_path_factory):
    recipe = getattr(request, "param", "neighbours")
    folder = tmp_path_factory.mktemp("whole")
    encoder = tiny.saved_encoder(folder / "encoder")
    rows = [f"{text} {i},{label}" for i in range(12) for texts, label in ((GOOD, 1), (BAD, 0)) for text in texts]
    (folder / "reviews.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    config = folder / "run.yaml"
    # A checkpoint after every step, so that a run of a second has twenty.
    config.write_text(
        f"recipe: {recipe}\ndata: {{dataset_name: '{folder}/reviews.csv'}}\n"
        f"model: {{name: '{encoder}', max_length: 16}}\n"
        "training: {max_epochs: 4, batch_size: 16, checkpoint_minutes: 1.0e-9}\n"
    )
    # First, because the server is still importing then.
    start(config, folder / "counted", *map(CallsInside, PLACES)).join()
    started = time.monotonic()
    start(config, folder / "run").join()
    seconds = time.monotonic() - started
    assert outcome(folder / "counted") == outcome(folder / "run")
    calls = json.loads((folder / "counted" / "calls.json").read_text())
    assert min(calls.values()) > 50
    return Whole(config, outcome(folder / "run"), seconds, calls)


def killed_by_the_clock(whole: Whole, out: Path, chance: random.Random):
    process = start(whole.config, out)
    time.sleep(chance.uniform(0, whole.seconds))
    process.kill()
    return process


def killed_inside(place: str):
    def killed(whole: Whole, out: Path, chance: random.Random):
        return start(whole.config, out, CallsInside(place, chance.randint(1, whole.calls[place])))

    return killed


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_kills_inside_a_place_change_no_bit(whole, place, tmp_path):
    resume_and_compare(whole, killed_inside(place), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("whole", RECIPES, indirect=True)
def test_kills_by_the_clock_change_no_bit(whole, tmp_path):
    resume_and_compare(whole, killed_by_the_clock, tmp_path)


def resume_and_compare(whole: Whole, killed, tmp_path: Path) -> None:
    chance = random.Random(0)
    kills = 0
    for attempt in range(3 * KILLS):
        out = tmp_path / f"killed-{attempt}"
        process = killed(whole, out, chance)
        process.join()
        if process.exitcode == -signal.SIGKILL:
            kills += 1
            resumed = start(whole.config, out, resume=True)
            resumed.join()
            assert resumed.exitcode == 0
            assert outcome(out) == whole.outcome
            assert (out / "names.json").exists()
        if kills == KILLS:
            return
    pytest.fail(f"only {kills} kills hit a run in time")
