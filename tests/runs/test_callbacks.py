"""Callbacks and trackers get every record of a run, and cannot end it."""

import logging
from dataclasses import dataclass, field

import pytest

from lexical_sae.config.load import build_config
from lexical_sae.runs.folder import RunFolder
from lexical_sae.sklearn import LexicalClassifier, LexicalTagger
from lexical_sae.training import callbacks
from lexical_sae.training.callbacks import Begun, Callback, TensorBoard, Told
from lexical_sae.utils.errors import MissingPackageError
from tests import tiny
from tests.sklearn.reviews import LABELS, TEXTS
from tests.training.tensorboard import drawn, installed

LOSSES = {1: 0.9, 2: 0.8, 3: 0.7, 4: 0.6, 5: 0.5}


@pytest.fixture
def board(monkeypatch):
    return installed(monkeypatch)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return str(tiny.saved_encoder(tmp_path_factory.mktemp("callbacks") / "encoder"))


@dataclass
class Listener(Callback):
    """Keeps what it is told."""

    heard: list = field(default_factory=list)

    def on_begin(self, begun):
        self.heard.append(("begin", begun.seed))

    def on_step(self, record):
        self.heard.append(("step", record["step"]))

    def on_epoch(self, record):
        self.heard.append(("epoch", record["accuracy"]))

    def on_end(self, record):
        self.heard.append(("end", record["accuracy"]))


class Broken:
    """Has one method, which fails."""

    calls = 0

    def on_step(self, record):
        self.calls += 1
        raise ConnectionError(f"no server for step {record['step']}")


def steps(told, numbers):
    for step in numbers:
        told.record({"step": step, "ce": LOSSES[step], "rates": {"encoder": 1e-4}})


def test_a_fit_tells_its_steps_epochs_and_end_and_goes_on_without_a_callback_that_raises(encoder, caplog):
    listener, broken = Listener(), Broken()
    plain = LexicalClassifier(encoder=encoder, recipe="neighbours", max_epochs=2, random_state=3)
    alone = plain.fit(TEXTS, LABELS).decision_function(TEXTS)
    with caplog.at_level(logging.WARNING, logger=callbacks.__name__):
        told = plain.fit(TEXTS, LABELS, callbacks=[broken, listener]).decision_function(TEXTS)
    kinds = [kind for kind, _ in listener.heard]
    assert listener.heard[0] == ("begin", 3)
    assert kinds.count("epoch") == 2
    assert kinds.count("step") >= 4
    assert kinds[-1] == "end"
    assert (alone == told).all()
    assert broken.calls == 1
    assert caplog.text.count("Broken raised in on_step; the run goes on without it") == 1


def test_a_tagger_tells_them_too(encoder):
    listener = Listener()
    sentences = [["good", word] for word in tiny.WORDS[:8]]
    LexicalTagger(encoder=encoder, max_epochs=6, random_state=0).fit(
        sentences, [["B-ORG", "O"]] * 8, callbacks=[listener]
    )
    assert [kind for kind, _ in listener.heard][-1] == "end"


def test_a_run_that_fails_has_no_end_but_is_closed():
    heard = []

    class Closing(Callback):
        def on_end(self, _):
            heard.append("end")

        def close(self):
            heard.append("closed")

    told = Told([Closing()])
    told.begin(Begun({}, 0))
    told.close()
    assert heard == ["closed"]


def test_tensorboard_gets_every_event_at_its_step(tmp_path, board):
    told = Told([TensorBoard()])
    told.begin(Begun({}, 0, tmp_path))
    steps(told, [1, 2])
    told.record({"event": "validation", "epoch": 1, "accuracy": 0.5})
    told.record({"event": "learning rate found", "lr": 0.1})
    told.close()
    curves = drawn(tmp_path / "tensorboard")
    assert curves["training/ce"] == [(1, 0.9), (2, 0.8)]
    assert curves["validation/accuracy"] == [(2, 0.5)]
    assert set(curves) == {"training/ce", "validation/accuracy", "validation/epoch", "learning rate found/lr"}
    assert board.made == 1


@pytest.mark.parametrize("flushed", [0, 2, 4])
def test_after_a_kill_tensorboard_neither_repeats_nor_lacks_a_step(tmp_path, board, flushed):
    killed = Told([TensorBoard()])
    with RunFolder.open(tmp_path, {}) as folder:
        killed.begin(Begun({}, 0, tmp_path))
        for numbers in ([1, 2], [3, 4]):
            steps(killed, numbers)
            for step in numbers:
                folder.append_history({"step": step, "ce": LOSSES[step]})
            if numbers[0] == 1:
                folder.save_checkpoint({})
        board.last.flush(flushed)
    with RunFolder.open(tmp_path, {}, resume=True) as folder:
        folder.load_checkpoint()
        told = Told([TensorBoard()])
        told.begin(Begun({}, 0, tmp_path, tuple(folder.read_history())))
        steps(told, [3, 4, 5])
        told.close()
    assert drawn(tmp_path / "tensorboard")["training/ce"] == list(LOSSES.items())


def test_no_tracker_switches_itself_on():
    assert build_config({}).training.report_to == ()


def test_a_tracker_that_is_unknown_or_not_installed_is_named_with_the_remedy(monkeypatch):
    with pytest.raises(ValueError, match="'tensorbord', which is no tracker; did you mean 'tensorboard'"):
        build_config({"training": {"report_to": ["tensorbord"]}})
    monkeypatch.setattr(callbacks, "find_spec", lambda _: None)
    with pytest.raises(MissingPackageError, match="pip install tensorboard"):
        callbacks.trackers(["tensorboard"])


def test_tensorboard_without_a_folder_is_left_out_of_the_run(caplog, board):
    told = Told([TensorBoard()])
    with caplog.at_level(logging.WARNING, logger=callbacks.__name__):
        told.begin(Begun({}, 0))
        steps(told, [1])
    assert "this run has none" in caplog.text
    assert board.made == 0


def test_the_real_tensorboard_reads_what_was_drawn(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    told = Told([TensorBoard()])
    told.begin(Begun({}, 0, tmp_path))
    steps(told, LOSSES)
    told.close()
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert {point.step: pytest.approx(point.value) for point in events.Scalars("training/ce")} == LOSSES
