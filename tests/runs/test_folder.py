import json
import logging
import math
import os
import signal
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import pytest
import torch
import yaml

from lexical_sae.runs import folder as run_folder
from lexical_sae.runs.folder import CONFIG, ENVIRONMENT, HISTORY, RunFolder, clear_run, read_settings
from lexical_sae.utils import files, lock
from lexical_sae.utils.lock import LOCK

NAME = "quickstart"
SETTINGS = {
    "experiment_name": "quickstart",
    "output_dir": "a",
    "model": {"gate": {"kind": "jumprelu", "bandwidth": 1e-05}},
    "seeds": (0, 1),
    "n": None,
}


@pytest.fixture
def place(tmp_path):
    return tmp_path / "run with spaces"


def test_a_new_run_writes_its_settings_versions_and_seed(place):
    with RunFolder.open(place, SETTINGS, seed=7) as run:
        saved = yaml.safe_load((place / CONFIG).read_text())
        assert saved == {**SETTINGS, "seeds": [0, 1]}
        record = json.loads((place / ENVIRONMENT).read_text())
        assert record["seed"] == 7
        assert record["versions"]["torch"] == torch.__version__
        assert run.path == place
        paths = (run.model, run.checkpoint, run.results, run.report, run.history)
        assert [path.name for path in paths] == ["model", "checkpoint", "results.json", "report.html", "history.jsonl"]


def test_a_second_run_in_the_folder_is_refused_with_the_way_out(place):
    RunFolder.open(place, SETTINGS).close()
    with pytest.raises(ValueError, match="already holds a run.*--resume, or choose another folder"):
        RunFolder.open(place, SETTINGS)


@pytest.mark.parametrize("left", ["model", "checkpoint"])
def test_a_folder_with_a_model_or_checkpoint_counts_as_a_run(place, left):
    (place / left).mkdir(parents=True)
    with pytest.raises(ValueError, match=f"already holds a run \\({left}\\)"):
        RunFolder.open(place, SETTINGS)


def test_other_files_in_the_folder_do_not_matter(place):
    place.mkdir()
    (place / "notes.txt").write_text("mine")
    RunFolder.open(place, SETTINGS).close()
    assert (place / "notes.txt").read_text() == "mine"


def test_nothing_to_resume_is_refused_and_leaves_no_folder(place):
    with pytest.raises(ValueError, match="no run to resume.*without --resume"):
        RunFolder.open(place, SETTINGS, resume=True)
    assert not place.exists()


def test_resuming_with_other_settings_names_the_keys_that_differ(place):
    RunFolder.open(place, SETTINGS).close()
    other = {**SETTINGS, "model": {"gate": {"kind": "drelu", "bandwidth": 1e-05}}, "extra": 1, "output_dir": "moved"}
    del other["n"]
    with pytest.raises(ValueError, match="other settings") as caught:
        RunFolder.open(place, other, resume=True)
    said = str(caught.value)
    assert "model.gate.kind: 'jumprelu' -> 'drelu'" in said
    assert "extra: '(absent)' -> 1" in said
    assert "n: None -> '(absent)'" in said
    assert "bandwidth" not in said
    assert "output_dir:" not in said
    RunFolder.open(place, SETTINGS, resume=True).close()


def test_a_moved_folder_can_be_resumed(place):
    RunFolder.open(place, SETTINGS).close()
    RunFolder.open(place, {**SETTINGS, "output_dir": "b"}, resume=True).close()


def test_resuming_elsewhere_warns_that_bits_may_differ(place, caplog):
    RunFolder.open(place, SETTINGS, seed=1).close()
    record = json.loads((place / ENVIRONMENT).read_text())
    record["versions"]["torch"] = "1.0"
    (place / ENVIRONMENT).write_text(json.dumps(record))
    with caplog.at_level(logging.WARNING):
        RunFolder.open(place, SETTINGS, seed=1, resume=True).close()
    assert f"versions.torch: '1.0' -> '{torch.__version__}'" in caplog.text


def test_two_cannot_hold_the_folder_at_once(place):
    with (
        RunFolder.open(place, SETTINGS),
        pytest.raises(ValueError, match=f"in use by process {os.getpid()}; wait, or choose another"),
    ):
        RunFolder.open(place, SETTINGS, resume=True)
    RunFolder.open(place, SETTINGS, resume=True).close()


def test_a_refused_opening_gives_up_the_lock(place):
    RunFolder.open(place, SETTINGS).close()
    for _ in range(2):
        with pytest.raises(ValueError, match="already holds a run"):
            RunFolder.open(place, SETTINGS)
    RunFolder.open(place, SETTINGS, resume=True).close()


HOLDER = """
    import sys, time
    from lexical_sae.runs.folder import RunFolder
    run = RunFolder.open(sys.argv[1], {})
    run.append_history({"step": 1})
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(lock.fcntl is None, reason="needs flock")
def test_a_killed_process_gives_up_the_lock(place):
    holder = subprocess.Popen([sys.executable, "-c", textwrap.dedent(HOLDER), str(place)], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(ValueError, match=f"in use by process {holder.pid}"):
            RunFolder.open(place, {}, resume=True)
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate()
    with RunFolder.open(place, {}, resume=True) as run:
        assert run.read_history() == [{"step": 1}]


def test_without_flock_a_file_stands_in_and_the_message_names_it(place, monkeypatch):
    monkeypatch.setattr(lock, "fcntl", None)
    with RunFolder.open(place, SETTINGS), pytest.raises(ValueError, match=rf"If that process is gone, delete .*{LOCK}"):
        RunFolder.open(place, SETTINGS, resume=True)
    assert not (place / LOCK).exists()
    RunFolder.open(place, SETTINGS, resume=True).close()


def test_files_are_written_whole_or_not_at_all(place, monkeypatch):
    with RunFolder.open(place, SETTINGS) as run:
        run.write_json("results.json", {"accuracy": 0.5, "nan": math.nan, "é": [math.inf, (1, 2)]})

        def full(_):
            raise OSError("No space left on device")

        monkeypatch.setattr(files, "flush_file", full)
        with pytest.raises(OSError, match="No space"):
            run.write_json("results.json", {"accuracy": 0.9})
        assert json.loads(run.results.read_text()) == {"accuracy": 0.5, "nan": None, "é": [None, [1, 2]]}
    assert {path.name for path in place.iterdir()} == {CONFIG, ENVIRONMENT, LOCK, "results.json"}


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".", ".."])
def test_only_plain_names_are_written(place, name):
    with RunFolder.open(place, SETTINGS) as run, pytest.raises(ValueError, match="not a plain file name"):
        run.write_text(name, "")


@pytest.mark.parametrize("torn", [b"", b'{"step": 4', b'{"step": 4}', b"\x00\x00\x00\n"])
def test_the_history_goes_back_to_the_checkpoint_and_a_torn_line_is_dropped(place, torn):
    with RunFolder.open(place, SETTINGS) as run:
        for step in range(2):
            run.append_history({"step": step, "loss": math.nan})
        assert run.save_checkpoint({"w": torch.ones(3)}) == 1
        for step in range(2, 4):
            run.append_history({"step": step})
    with (place / HISTORY).open("ab") as file:
        file.write(torn)
    with RunFolder.open(place, SETTINGS, resume=True) as run:
        assert [record["step"] for record in run.read_history()] == [0, 1, 2, 3]
        loaded = run.load_checkpoint()
        assert loaded is not None
        assert list(loaded.state) == ["w"]
        run.append_history({"step": 2})
        assert [record["step"] for record in run.read_history()] == [0, 1, 2]


def test_seconds_are_those_of_all_parts_without_what_a_kill_lost(place, monkeypatch):
    clock = SimpleNamespace(now=1000.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(run_folder, "time", clock)
    with RunFolder.open(place, SETTINGS) as run:
        clock.now += 10
        run.save_checkpoint({})
        clock.now += 5
        assert run.seconds == 15
    clock.now += 100
    for _ in range(2):
        with RunFolder.open(place, SETTINGS, resume=True) as run:
            clock.now += 2
            run.load_checkpoint()
            assert run.seconds == 12
    with RunFolder.open(place, SETTINGS, resume=True) as run:
        run.load_checkpoint()
        clock.now += 7
        run.save_checkpoint({})
    with RunFolder.open(place, SETTINGS, resume=True) as run:
        run.load_checkpoint()
        assert run.seconds == 17


def test_a_run_killed_before_its_first_checkpoint_starts_from_the_beginning(place):
    with RunFolder.open(place, SETTINGS) as run:
        run.append_history({"step": 0})
    with RunFolder.open(place, SETTINGS, resume=True) as run:
        assert run.load_checkpoint() is None
        assert run.read_history() == []


def test_a_history_shorter_than_the_checkpoint_says_is_told(place, caplog):
    with RunFolder.open(place, SETTINGS) as run:
        run.append_history({"step": 0})
        run.save_checkpoint({})
        run.history.unlink()
        run.load_checkpoint()
    assert "has 0 records, the checkpoint counts 1" in caplog.text


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ValueError, match="a file is in the way; choose another folder"):
            RunFolder.open(path, SETTINGS)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_refused(place):
    place.mkdir(mode=0o500)
    with pytest.raises(PermissionError, match="cannot write to"):
        RunFolder.open(place, SETTINGS)


def test_damaged_settings_are_refused_on_resume(place):
    RunFolder.open(place, SETTINGS).close()
    (place / CONFIG).write_text("a: [")
    with pytest.raises(ValueError, match=r"resolved_config.yaml cannot be read"):
        RunFolder.open(place, SETTINGS, resume=True)


def test_clearing_a_run_makes_room_for_another_and_leaves_other_files(place):
    with RunFolder.open(place, SETTINGS) as run:
        run.append_history({"step": 0})
        run.save_checkpoint({"step": 0})
        for name in ("results.json", "faithfulness.json", "sae.json", "evaluation-my reviews.json"):
            run.write_json(name, {})
        run.model.mkdir()
        (place / "tensorboard").mkdir()
        (place / "notes.txt").write_text("mine")
        with pytest.raises(ValueError, match="in use"):
            clear_run(place, only=NAME)
        assert run.results.exists()
    clear_run(place, only=NAME)
    assert {path.name for path in place.iterdir()} == {LOCK, "notes.txt"}
    RunFolder.open(place, SETTINGS).close()


def test_the_run_of_another_experiment_is_not_cleared(place):
    with RunFolder.open(place, {**SETTINGS, "experiment_name": "my thesis"}) as run:
        run.write_json("results.json", {})
    clear_run(place, only=NAME)
    assert (place / "results.json").exists()


def test_a_folder_without_a_run_is_not_cleared(place):
    (place / "model").mkdir(parents=True)
    clear_run(place, only=NAME)
    assert (place / "model").exists()
    clear_run(place / "absent", only=NAME)
    assert not (place / "absent").exists()


def test_damaged_settings_are_refused_in_words(tmp_path):
    (tmp_path / "resolved_config.yaml").write_text("a: [1")
    with pytest.raises(ValueError, match=r"(?s)resolved_config.yaml cannot be read .*restore it"):
        read_settings(tmp_path)
