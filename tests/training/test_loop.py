import json
from pathlib import Path

import pytest
import torch

from splade.data.batches import tokenise
from splade.models.config import ModelConfig
from splade.recipes import RECIPES, recipe_by_name
from splade.training.checkpoint import load_checkpoint, save_checkpoint
from splade.training.loop import Callbacks, Interrupted, Trainer
from splade.training.optim import AdamWEMA
from splade.training.settings import TrainingConfig
from splade.training.stopping import EpochScores, Selection
from splade.training.tasks import IGNORED, Documents, Positions
from tests import tiny

GOOD = ["a good film", "the acting was wonderful", "great plot and good acting", "a very good movie"]
BAD = ["a bad film", "the acting was terrible", "awful plot and boring acting", "a very boring movie"]
TEXTS, LABELS = (GOOD + BAD) * 4, ([0] * 4 + [2] * 4) * 4
GOLDEN = Path(__file__).parent / "golden_curves.json"


def recipe_model(name):
    parts = recipe_by_name(name).model
    model = tiny.model(parts)
    model.start_from_backbone()
    return model


def documents(model, texts=TEXTS, labels=LABELS):
    return Documents(tokenise(model.tokenizer, texts, 16), torch.tensor(labels, dtype=torch.long))


def recipe_trainer(name, callbacks=None, **changes):
    """A recipe's training on a tiny model, with rates that move it within a few steps."""
    model = recipe_model(name)
    defaults = {"max_epochs": 3, "batch_size": 8, "learning_rate": 1e-3, "active_target": 8.0}
    settings = recipe_by_name(name).training.model_copy(update={**defaults, **changes})
    task = documents(model)
    return Trainer(model, task, documents(model, GOOD + BAD, LABELS[:8]), settings, seed=3, callbacks=callbacks)


def weights(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def assert_bitwise_equal(ours, theirs):
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if not torch.equal(ours[name], theirs[name])] == []


def curve(name):
    records = []
    trainer = recipe_trainer(name, Callbacks(on_record=records.append))
    trainer.run()
    steps = [record for record in records if "step" in record]
    return [{key: round(value, 5) for key, value in step.items() if isinstance(value, float)} for step in steps]


@pytest.mark.parametrize("name", list(RECIPES))
def test_recipe_follows_its_golden_curve(name):
    """Refresh with `python -m tests.training.test_loop` after a change that is meant to change training."""
    golden = json.loads(GOLDEN.read_text())[name]
    found = curve(name)
    assert len(found) == len(golden) == 12
    for ours, theirs in zip(found, golden, strict=True):
        assert ours == pytest.approx(theirs, rel=2e-2, abs=2e-3)


@pytest.mark.parametrize("name", list(RECIPES))
def test_recipe_learns_and_asks_for_circuits_after_the_warm_up(name):
    records = []
    trainer = recipe_trainer(name, Callbacks(on_record=records.append), max_epochs=12)
    trainer.run()
    steps = [r for r in records if "step" in r]
    assert steps[-1]["ce"] < steps[0]["ce"]
    terms = {term.kind for term in trainer.settings.objective.terms}
    assert terms.isdisjoint(steps[trainer.warmup_steps - 1])
    assert terms <= steps[trainer.warmup_steps].keys()
    assert trainer.geco.tau is not None
    assert len([r for r in records if r.get("event") == "validation"]) == trainer.epoch


def test_best_weights_are_the_weights_that_were_scored():
    scored = []
    trainer = recipe_trainer("cajt", max_epochs=4)
    plain_score = trainer._score

    def score(epoch):
        scores = plain_score(epoch)
        scored.append((scores, weights(trainer.model)))
        return scores

    trainer._score = score
    best = trainer.run()
    (kept,) = [held for scores, held in scored if scores is best]
    assert_bitwise_equal(weights(trainer.model), kept)
    assert not trainer.model.training


@pytest.mark.parametrize("name", ["anchored", "cajt", "cis"])
@pytest.mark.parametrize("stop_after", [1, 4, 7, 11])
def test_an_interrupted_run_ends_bitwise_like_an_uninterrupted_one(name, stop_after, tmp_path):
    whole = recipe_trainer(name)
    whole.run()
    seen = []
    callbacks = Callbacks(
        on_record=lambda record: seen.append(record) if "step" in record else None,
        on_checkpoint=lambda state: save_checkpoint(tmp_path, state),
        is_interrupted=lambda: len(seen) >= stop_after,
    )
    first = recipe_trainer(name, callbacks)
    with pytest.raises(Interrupted, match=f"after step {stop_after} of 12"):
        first.run()
    torch.rand(17)
    second = recipe_trainer(name)
    second.load_state_dict(load_checkpoint(tmp_path).state)
    second.run()
    assert_bitwise_equal(weights(second.model), weights(whole.model))
    assert second.selection.best == whole.selection.best


def test_accumulated_gradients_equal_those_of_the_whole_batch():
    """Per-sample terms at dropout 0, without random masking; the spread of the logits and the count are the batch's."""
    kept = []
    for size in (8, 2, 1):
        terms = {"objective": recipe_by_name("anchored").training.objective.model_copy(update={"terms": ()})}
        optimiser = AdamWEMA.Config(schedule="constant", warmup=0.0, ema=None)
        trainer = recipe_trainer(
            "anchored", batch_size=size, gradient_accumulation_steps=8 // size, optimiser=optimiser, count=None, **terms
        )
        for part in trainer.model.modules():
            if isinstance(part, torch.nn.Dropout):
                part.p = 0.0
        trainer.model.masking = torch.nn.Identity()
        trainer.prepare()
        trainer.model.train()
        trainer.model.gate._watch = lambda _: None
        rows = list(range(8))
        trainer.micro.run(rows, trainer._backward, trainer.optimiser.zero_grad)
        kept.append({name: p.grad.clone() for name, p in trainer.model.named_parameters() if p.grad is not None})
    for other in kept[1:]:
        for name, grad in kept[0].items():
            torch.testing.assert_close(other[name], grad, atol=1e-6, rtol=1e-4)


def test_embeddings_stay_frozen_and_learn_on_request():
    for freeze in (True, False):
        trainer = recipe_trainer("anchored", freeze_embeddings=freeze, max_epochs=1)
        before = trainer.model.backbone.decoder.weight.detach().clone()
        trainer.run()
        assert torch.equal(trainer.model.backbone.decoder.weight, before) == freeze


def test_every_group_of_parameters_moves_and_thresholds_too():
    trainer = recipe_trainer("anchored")
    before = weights(trainer.model)
    trainer.prepare()
    trainer._finish_epoch()
    after = weights(trainer.model)
    for name in ("gate.log_theta", "gate.offset", "heads.classify.word_vectors", "heads.classify.class_weights"):
        assert not torch.equal(before[name], after[name]), name
    assert any(name.startswith("backbone.encoder") and not torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("name", list(RECIPES))
def test_every_parameter_that_learns_is_in_one_group(name):
    trainer = recipe_trainer(name)
    groups = trainer._groups(1e-4)
    listed = [id(p) for group in groups for p in group.params]
    learning = [*trainer.model.parameters(), *trainer.objective.parameters()]
    assert sorted(listed) == sorted(id(p) for p in learning if p.requires_grad)
    rates = {id(p): (group.lr, group.decays) for group in groups for p in group.params}
    gate = 1e-4 * trainer.settings.gate_rate
    assert {rates[id(p)] for p in trainer.model.gate.parameters()} == {(gate, False)}


def test_a_lower_target_leaves_fewer_words_active():
    found = []
    for target in (3.0, 20.0):
        trainer = recipe_trainer("anchored", active_target=target, max_epochs=15, calibrated_start=None)
        found.append(trainer.run().active_words)
    assert found[0] < 0.7 * found[1]


def test_a_range_test_finds_a_rate_and_leaves_no_trace():
    trainer = recipe_trainer("cis", learning_rate=None)
    before = weights(trainer.model)
    trainer.prepare()
    assert_bitwise_equal(weights(trainer.model), before)
    assert 1e-6 <= trainer.optimiser.peak_rates[0] <= 1e-3


def test_an_automatic_batch_size_leaves_no_trace():
    trainer = recipe_trainer("cis", batch_size=None)
    before = weights(trainer.model)
    trainer.prepare()
    assert_bitwise_equal(weights(trainer.model), before)
    assert trainer.micro.size == 32


def test_a_loss_that_is_no_number_stops_with_an_explanation():
    trainer = recipe_trainer("anchored")
    with torch.no_grad():
        trainer.model.heads["classify"].class_bias.fill_(torch.nan)
    with pytest.raises(FloatingPointError, match="at step 1 .*lower training.learning_rate"):
        trainer.run()


def test_nothing_to_learn_from_is_refused():
    model = tiny.model()
    with pytest.raises(ValueError, match="0 to learn from"):
        Trainer(model, documents(model, [], []), documents(model), TrainingConfig())


def test_positions_are_learned_by_the_same_loop():
    model = tiny.model(ModelConfig.model_validate({"gate": "drelu"}))
    texts = tokenise(model.tokenizer, TEXTS, 16)
    good = set(tiny.wordpiece().convert_tokens_to_ids(["good", "great", "wonderful"]))
    tags = [[IGNORED, *(int(i in good) for i in ids[1:-1]), IGNORED] for ids in texts.ids]
    task = Positions(texts, tags)
    asked = recipe_by_name("anchored").training.objective
    settings = TrainingConfig(max_epochs=20, batch_size=8, learning_rate=1e-3, positions_per_step=5, objective=asked)
    best = Trainer(model, task, task, settings).run()
    assert best.accuracy > 0.95
    encoded = task.encode(model, [0, 1])
    assert len(encoded.labels) == sum(tag != IGNORED for row in tags[:2] for tag in row)


def scores(epoch, ce, circuit, constrained=True, feasible=True):
    return EpochScores(epoch, ce, 0.9, 50.0, circuit, constrained, feasible)


def test_feasible_epochs_come_first_then_the_lowest_circuit_objective_and_never_the_warm_up():
    selection = Selection(patience=2)
    order = [
        scores(1, 0.1, 0.0, constrained=False),
        scores(2, 0.9, 0.1, feasible=False),
        scores(3, 0.5, 0.8),
        scores(4, 0.3, 0.9),
        scores(5, 0.5, 0.4),
    ]
    assert [selection.take(epoch) for epoch in order] == [True, True, True, False, True]
    assert selection.best == order[4]


def test_patience_ends_a_run_but_not_in_the_warm_up():
    selection = Selection(patience=2)
    for epoch in range(1, 5):
        selection.take(scores(epoch, 1.0, float(epoch), constrained=False))
    assert not selection.is_over
    for epoch in range(5, 8):
        selection.take(scores(epoch, 1.0, 1.0))
    assert selection.is_over


@pytest.mark.parametrize("sizes", [(8, 32)])
def test_active_counts_do_not_depend_on_the_batch_size(sizes):
    found = []
    for size in sizes:
        trainer = recipe_trainer("anchored", batch_size=size, max_epochs=1)
        trainer.prepare()
        found.append(trainer._score(0).active_words)
    assert found[0] == pytest.approx(found[1], rel=0.05)


if __name__ == "__main__":
    torch.set_num_threads(1)
    GOLDEN.write_text(json.dumps({name: curve(name) for name in RECIPES}, indent=1) + "\n")
