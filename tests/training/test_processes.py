"""Two processes that train together give the curves, words and states of one that trains alone."""

import json
import multiprocessing
import os
import signal
import socket
import time

import pytest
import torch

from lexical_sae.recipes import RECIPES
from lexical_sae.training.callbacks import Callbacks
from lexical_sae.training.loop import Trainer
from lexical_sae.training.processes import ALONE, current, joined
from lexical_sae.training.resuming.checkpoint import load_checkpoint, save_checkpoint
from lexical_sae.training.stopping import Interrupted
from lexical_sae.utils.device import set_seed
from tests.training.test_both_tasks import new_trainer
from tests.training.test_loop import double_precision, recipe_trainer, sharpened

# Forked from a server that has imported everything: a process begins at once.
forks = multiprocessing.get_context("forkserver")
forks.set_forkserver_preload([__name__])


def _as_rank(rank, count, port, work, out, args):
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    with joined("cpu"):
        found = work(out, *args)
    (out / f"rank-{rank}.json").write_text(json.dumps(found))


def start(work, out, *args, count=2):
    """Processes that do the same work together."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    every = [forks.Process(target=_as_rank, args=(rank, count, port, work, out, args)) for rank in range(count)]
    for process in every:
        process.start()
    return every


def together(work, out, *args, count=2):
    """What each of them found."""
    every = start(work, out, *args, count=count)
    for process in every:
        process.join(timeout=300)
    assert [process.exitcode for process in every] == [0] * count
    return [json.loads((out / f"rank-{rank}.json").read_text()) for rank in range(count)]


BOTH = "both tasks"


def trainer_of(name, callbacks=None, *, dropout=0.0, **changes) -> Trainer:
    set_seed(0)
    if name == BOTH:
        made = new_trainer(shared=True, callbacks=callbacks, **changes)
    else:
        made = recipe_trainer(name, callbacks, **{**sharpened(name), **changes})
    for part in made.model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = dropout
    return made


def curve(_out, name, changes=None):
    """The figures of a run in double precision, and how far the processes were apart when it ended."""
    records = []
    with double_precision():
        trainer = trainer_of(name, Callbacks(on_record=records.append), **(changes or {}))
        trainer.run()
    return {"curve": figures(records), "differing": current().differing(trainer.state_dict())}


def figures(records):
    return [{key: value for key, value in record.items() if isinstance(value, float)} for record in records]


def assert_equal_curves(ours, theirs):
    assert len(ours) == len(theirs) > 3
    for one, other in zip(ours, theirs, strict=True):
        # A fitted table is as exact as its optimiser is asked to be.
        assert one == pytest.approx(other, rel=1e-6, abs=1e-9)


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in RECIPES if name not in ("anchored", "cajt")]


@pytest.mark.parametrize("name", ["anchored", "cajt", BOTH, *SLOW])
def test_two_processes_follow_the_curve_of_one(name, tmp_path):
    alone = curve(tmp_path, name)
    for found in together(curve, tmp_path, name):
        assert found["differing"] == []
        assert_equal_curves(found["curve"], alone["curve"])


def test_batches_that_do_not_divide_by_the_processes_are_shared_too(tmp_path):
    # The last batch of 32 texts is one of two, for three processes.
    changes = {"batch_size": 5, "effective_batch": 5, "max_epochs": 2}
    alone = curve(tmp_path, "cajt", changes)
    for found in together(curve, tmp_path, "cajt", changes, count=3):
        assert_equal_curves(found["curve"], alone["curve"])


@pytest.mark.slow
def test_the_same_learning_rate_is_found(tmp_path):
    changes = {"learning_rate": None, "max_epochs": 1}
    alone = curve(tmp_path, "cis", changes)
    for found in together(curve, tmp_path, "cis", changes):
        assert_equal_curves(found["curve"], alone["curve"])


def dropped_states(_out):
    trainer = trainer_of("cajt", dropout=0.5)
    trainer.model.train()
    row = trainer.train.texts.batch([0, 0, 0, 0])
    with current().sharing(trainer.model.backbone.encoder):
        passes = [trainer.model.encoder_states(row.input_ids, row.attention_mask)[:, 0].tolist() for _ in range(2)]
    return {"passes": passes, "next": torch.rand(3).tolist()}


def test_processes_drop_other_units_of_their_texts_and_draw_the_same_afterwards(tmp_path):
    ours, theirs = together(dropped_states, tmp_path)
    assert ours == theirs
    once, again = torch.tensor(ours["passes"])
    assert not torch.equal(*once.chunk(2))
    assert not torch.equal(once, again)


def encoded_rows(_out):
    trainer, rows = trainer_of("cajt"), []
    trainer.model.backbone.encoder.register_forward_hook(lambda *given: rows.append(len(given[2].last_hidden_state)))
    trainer.run()
    return rows


def test_each_process_encodes_half_of_the_rows(tmp_path):
    whole = encoded_rows(tmp_path)
    for found in together(encoded_rows, tmp_path):
        assert [2 * rows for rows in found] == whole


def repaired(_out):
    trainer = trainer_of("cajt", max_epochs=1)
    trainer.prepare()
    if current().rank == 1:
        trainer.model.gate.logit_spread.add_(1e-3)
    before = current().differing(trainer.state_dict())
    trainer._keep_in_step()
    return {"before": len(before), "after": current().differing(trainer.state_dict())}


def test_processes_that_drifted_apart_go_on_from_the_first_ones_state(tmp_path):
    for found in together(repaired, tmp_path):
        assert found == {"before": 1, "after": []}


STOPPED_AT = 5


def stopped(out, name):
    """A run that only the last process is asked to stop; the first saves it."""
    last = current().rank == current().count - 1
    steps = []
    callbacks = Callbacks(
        on_step=lambda step: steps.append(step) if step.task.startswith("training") else None,
        on_checkpoint=(lambda state: save_checkpoint(out / "checkpoint", state)) if current().is_first else None,
        is_interrupted=lambda: last and len(steps) == STOPPED_AT,
    )
    with double_precision(), pytest.raises(Interrupted):
        trainer_of(name, callbacks).run()


def resumed(out, name):
    records = []
    with double_precision():
        trainer = trainer_of(name, Callbacks(on_record=records.append))
        trainer.load_state_dict(load_checkpoint(out / "checkpoint").state)
        trainer.run()
    return figures(records)


@pytest.mark.parametrize("before", [1, 2])
def test_a_run_resumes_with_another_number_of_processes(before, tmp_path):
    whole = curve(tmp_path, "cajt")["curve"]
    if before == 1:
        stopped(tmp_path, "cajt")
        (found, _) = together(resumed, tmp_path, "cajt")
    else:
        together(stopped, tmp_path, "cajt")
        found = resumed(tmp_path, "cajt")
    assert_equal_curves(found, whole[-len(found) :])
    assert len(found) < len(whole)


def slow_run(out):
    trainer_of("cajt", Callbacks(on_step=lambda _: (out / f"begun-{current().rank}").touch()), max_epochs=10_000).run()


def test_the_death_of_one_process_ends_the_others(tmp_path):
    first, second = start(slow_run, tmp_path)
    while not ((tmp_path / "begun-0").exists() and (tmp_path / "begun-1").exists()):
        time.sleep(0.05)
    os.kill(second.pid, signal.SIGKILL)
    first.join(timeout=60)
    assert first.exitcode not in (0, None)


def test_a_process_that_torchrun_did_not_start_trains_alone():
    with joined("cpu") as processes:
        assert processes == current() == ALONE
        assert processes.any(True)
        assert processes.least(3) == 3
        assert processes.from_first("own") == "own"
