"""A run in which every word has closed guesses to its end unless somebody says so."""

import pytest
import torch

from lexical_sae.training.callbacks import Callbacks
from lexical_sae.training.preparation import lr_range
from lexical_sae.training.preparation.lr_range import REHEARSED_STEPS
from lexical_sae.training.stopping import SILENT_STEPS, NoWordActive, Silence
from tests.training.test_loop import assert_bitwise_equal, recipe_trainer, weights

FAR = 1e4
"""A threshold that no logit reaches."""


def silenced(name, callbacks=None, **changes):
    """A recipe's trainer, ready to go, whose words are all closed."""
    trainer = recipe_trainer(name, callbacks, max_epochs=20, **changes)
    trainer.prepare()
    with torch.no_grad():
        trainer.model.gate.offset.fill_(-FAR)
    return trainer


@pytest.mark.parametrize("name", ["cis", "lexical_sae", "transcoder"])
def test_a_run_without_an_active_word_stops_with_a_remedy(name):
    steps = []
    trainer = silenced(name, Callbacks(on_record=lambda record: steps.append(record.get("step"))))
    with pytest.raises(
        NoWordActive, match=r"(?s)no word has been active.*lower training\.learning_rate \(it is 1\.0e-03"
    ):
        trainer.run()
    assert max(filter(None, steps)) == SILENT_STEPS


def test_a_run_that_asks_for_closed_words_to_come_back_goes_on():
    trainer = silenced("cajt", patience=20)
    assert trainer.criterion.objective.reopens_words
    best = trainer.run()
    assert trainer.step > SILENT_STEPS
    assert best.active_words == 0
    assert not best.is_feasible, "tau is that of guessing here"
    assert best.ce >= best.guessing_ce - 1e-6


def test_a_single_active_word_ends_the_silence():
    silence = Silence()
    assert not any(silence.take(0.0) for _ in range(SILENT_STEPS - 1))
    assert not silence.take(0.1)
    assert not any(silence.take(0.0) for _ in range(SILENT_STEPS - 1))
    assert silence.take(0.0)


def test_the_silence_of_a_checkpoint_counts_after_resuming():
    trainer = silenced("cis")
    trainer.max_epochs = 2
    trainer.run()
    state = trainer.state_dict()
    resumed = recipe_trainer("cis", max_epochs=20)
    resumed.load_state_dict(state)
    assert resumed.silence.steps == trainer.step


def closing(trainer):
    """The trainer with a loss that falls fastest by closing every word."""
    plain = trainer.criterion.loss

    def loss(model, encoded, **others):
        task, seen = plain(model, encoded, **others)
        return task + 100 * encoded.gate.activated.sum(), seen

    trainer.criterion.loss = loss
    return trainer


@pytest.mark.parametrize("change", [lambda trainer: trainer, closing])
def test_a_rate_that_closes_every_word_is_noticed_before_training_and_lowered(change, monkeypatch, caplog):
    monkeypatch.setattr(lr_range, "rate_after_fall", lambda *_: lr_range.LARGEST)
    records = []
    callbacks = Callbacks(on_record=records.append)
    trainer = change(recipe_trainer("cis", callbacks, learning_rate=None, gate_rate=200.0, calibrated_start=None))
    before = weights(trainer.model)
    trainer.prepare()
    assert_bitwise_equal(weights(trainer.model), before)
    (rate,) = [record["lr"] for record in records if record.get("event") == "learning rate found"]
    assert trainer.optimizer.peak_rates[0] == rate
    assert (rate < lr_range.LARGEST) == (change is closing)
    assert ("of the words stay active; trying" in caplog.text) == (change is closing)
    assert rate > lr_range.SMALLEST, "not lower than it must be"


def test_a_rehearsal_is_what_the_run_will_do():
    """Batches, schedule and chance included: otherwise it would say nothing about this run."""
    trainer = recipe_trainer("cis", learning_rate=None, batch_size=1, max_epochs=1, warmup_fraction=1.0)
    rehearsed, plain = [], trainer.steps.take

    def move(optimizer, rows):
        pieces = plain(optimizer, rows)
        rehearsed.append([(piece.ce, piece.active) for piece in pieces])
        return pieces

    trainer.steps.take = move
    trainer.run()
    tried = len(rehearsed) - trainer.step
    assert tried == REHEARSED_STEPS < trainer.step
    assert rehearsed[:tried] == rehearsed[tried : 2 * tried]
