import pytest

from lexical_sae.runs.folder import RunFolder
from lexical_sae.runs.seeds import recorder
from tests.training.tensorboard import drawn, installed

LOSSES = {1: 0.9, 2: 0.8, 3: 0.7, 4: 0.6, 5: 0.5}


@pytest.fixture
def board(monkeypatch):
    return installed(monkeypatch)


def tell(record, steps):
    for step in steps:
        record({"step": step, "ce": LOSSES[step], "rates": {"encoder": 1e-4}})


def test_records_go_to_the_history_and_where_it_is_installed_to_tensorboard(tmp_path, board):
    with RunFolder.open(tmp_path, {}) as folder:
        with recorder(folder) as record:
            tell(record, [1, 2])
            record({"event": "validation", "epoch": 1, "accuracy": 0.5})
        assert [r.get("step") for r in folder.read_history()] == [1, 2, None]
    curves = drawn(tmp_path / "tensorboard")
    assert curves["training/ce"] == [(1, 0.9), (2, 0.8)]
    # A validation stands at the step after which it was made.
    assert curves["validation/accuracy"] == [(2, 0.5)]
    assert set(curves) == {"training/ce", "validation/accuracy", "validation/epoch"}
    assert board.made == 1


@pytest.mark.parametrize("flushed", [0, 2, 4])
def test_after_a_kill_tensorboard_neither_repeats_nor_lacks_a_step(tmp_path, board, flushed):
    with RunFolder.open(tmp_path, {}) as folder:
        killed = recorder(folder)
        record = killed.__enter__()
        tell(record, [1, 2])
        folder.save_checkpoint({})
        tell(record, [3, 4])
        board.last.flush(flushed)
    with RunFolder.open(tmp_path, {}, resume=True) as folder:
        folder.load_checkpoint()
        with recorder(folder) as record:
            tell(record, [3, 4, 5])
        assert [r["step"] for r in folder.read_history()] == [1, 2, 3, 4, 5]
    assert drawn(tmp_path / "tensorboard")["training/ce"] == list(LOSSES.items())


def test_without_tensorboard_there_is_the_history_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with RunFolder.open(tmp_path, {}) as folder:
        with recorder(folder) as record:
            tell(record, [1])
        assert folder.read_history()[0]["ce"] == 0.9
        assert not folder.tensorboard.exists()


def test_the_real_tensorboard_reads_what_was_drawn(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with RunFolder.open(tmp_path, {}) as folder, recorder(folder) as record:
        tell(record, LOSSES)
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert {point.step: pytest.approx(point.value) for point in events.Scalars("training/ce")} == LOSSES
