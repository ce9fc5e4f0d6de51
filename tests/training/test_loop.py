import json
import random
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from lexical_sae.circuits.terms import FrequencyPenalty
from lexical_sae.data.batches import tokenize
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.layers.virtual_expander import VirtualExpander
from lexical_sae.recipes import RECIPES, recipe_by_name
from lexical_sae.training.callbacks import Callbacks
from lexical_sae.training.loop import Trainer
from lexical_sae.training.optim import AdamWEMA
from lexical_sae.training.resuming.checkpoint import load_checkpoint, save_checkpoint
from lexical_sae.training.settings import TrainingConfig
from lexical_sae.training.stopping import EpochScores, Interrupted, Selection, StoppedBeforeSaving
from lexical_sae.training.tasks import IGNORED, Documents, Positions
from tests import tiny
from tests.tiny import BAD, GOOD, WORDS

TEXTS, LABELS = (GOOD + BAD) * 4, ([0] * 4 + [2] * 4) * 4
GOLDEN = Path(__file__).parent / "golden_curves.json"
ASKING = [name for name in RECIPES if recipe_by_name(name).training.objective.terms]
"""Recipes that ask something of circuits."""


def recipe_model(name):
    parts = recipe_by_name(name).model
    model = tiny.model(parts)
    model.start_from_backbone()
    return model


def documents(model, texts=TEXTS, labels=LABELS):
    return Documents(tokenize(model.tokenizer, texts, 16), torch.tensor(labels, dtype=torch.long))


def recipe_trainer(name, callbacks=None, model=None, **changes):
    """A recipe's training on a tiny model, with rates that move it within a few steps."""
    model = model or recipe_model(name)
    defaults = {"max_epochs": 3, "batch_size": 8, "learning_rate": 1e-3, "active_target": 8.0}
    settings = recipe_by_name(name).training.model_copy(update={**defaults, **changes})
    task = documents(model)
    return Trainer(model, task, documents(model, GOOD + BAD, LABELS[:8]), settings, seed=3, callbacks=callbacks)


def weights(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def assert_bitwise_equal(ours, theirs):
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if not torch.equal(ours[name], theirs[name])] == []


def sharpened(name):
    """Settings that leave nothing of a recipe at rest in twelve steps: no lambda at its floor, no silent frequency."""
    training = recipe_by_name(name).training
    terms = tuple(
        term.model_copy(update={"quiet_steps": 0, "least_frequency": 0.5})
        if isinstance(term, FrequencyPenalty.Config)
        else term
        for term in training.objective.terms
    )
    return {
        "controller": training.controller.model_copy(update={"tau_ce": 0.7}),
        "objective": training.objective.model_copy(update={"terms": terms}),
    }


@contextmanager
def double_precision():
    """Everything is drawn and computed in double: in single, rounding that differs by machine opens other words."""
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def curve(name):
    """The figures of twelve steps and three validations, in order."""
    records = []
    with double_precision():
        trainer = recipe_trainer(name, Callbacks(on_record=records.append), **sharpened(name))
        trainer.run()
    return [{key: value for key, value in record.items() if isinstance(value, float)} for record in records]


@pytest.mark.parametrize("name", list(RECIPES))
def test_recipe_follows_its_golden_curve(name):
    """`make golden` rewrites the curves after a change that is meant to change training."""
    golden = json.loads(GOLDEN.read_text())[name]
    found = curve(name)
    # The last batch of each of the five folds is smaller, and the table alone is validated too.
    assert len(found) == len(golden) == (12 + 3 if name in ASKING else 15 + 4)
    # A fitted table is as exact as its optimiser is asked to be, and how it gets there differs by machine.
    rel = 1e-9 if name in ASKING else 1e-6
    for ours, theirs in zip(found, golden, strict=True):
        assert ours == pytest.approx(theirs, rel=rel, abs=1e-12)
    steps = [record for record in golden if "lambda" in record]
    for figure in steps[-1].keys() - ({"mu", "tau"} if name in ASKING else {"lambda"}):
        assert len({step[figure] for step in steps if figure in step}) > 1, f"{figure} never moves in the curve"


@pytest.mark.parametrize("name", list(RECIPES))
def test_a_model_in_double_precision_trains_in_double_precision(name):
    trainer = recipe_trainer(name, model=recipe_model(name).double(), max_epochs=2)
    assert np.isfinite(trainer.run().ce)
    state = {**trainer.model.state_dict(), **trainer.criterion.state_dict()}
    assert {tensor.dtype for tensor in state.values() if tensor.is_floating_point()} == {torch.float64}


@pytest.mark.parametrize("name", ASKING)
def test_recipe_learns_and_asks_for_circuits_after_the_warm_up(name):
    records = []
    trainer = recipe_trainer(name, Callbacks(on_record=records.append), max_epochs=12)
    trainer.run()
    steps = [r for r in records if "step" in r]
    assert steps[-1]["ce"] < steps[0]["ce"]
    terms = {term.kind for term in trainer.settings.objective.terms}
    early = {term.kind for term in trainer.settings.objective.terms if term.in_warmup}
    assert terms & steps[trainer.warmup_steps - 1].keys() == early
    assert terms <= steps[trainer.warmup_steps].keys()
    assert trainer.geco.tau is not None
    assert len([r for r in records if r.get("event") == "validation"]) == trainer.epoch


def test_progress_shows_terms_words_and_lambda():
    steps = []
    trainer = recipe_trainer("cis", Callbacks(on_step=steps.append))
    trainer.run()
    told = [step for step in steps if step.task.startswith("training")]
    assert [step.done for step in told] == list(range(1, 13))
    terms = {term.kind for term in trainer.settings.objective.terms}
    for i, step in enumerate(told):
        asked = terms | {"λ"} if i >= trainer.warmup_steps else set()
        assert set(step.figures) == {"loss", "active words"} | asked
        assert ("circuits" in step.task) == bool(asked)


def test_a_run_takes_short_texts_first_where_it_is_asked_to(monkeypatch):
    for asked, is_sorted in ((1.0, True), (0.0, False)):
        trainer = recipe_trainer("neighbours", short_first=asked, max_epochs=1, batch_size=4)
        taken = []
        monkeypatch.setattr(trainer, "_take_step", taken.append)
        trainer.prepare()
        trainer._finish_epoch()
        lengths = [sum(len(trainer.train.texts.ids[row]) for row in rows) for rows in taken]
        assert (lengths == sorted(lengths)) == is_sorted


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


def test_the_warm_ups_last_epoch_is_never_chosen_even_when_it_ends_on_an_epoch():
    trainer = recipe_trainer("neighbours", max_epochs=5)
    assert trainer.warmup_steps == trainer.steps_per_epoch
    best = trainer.run()
    assert best.epoch > 1
    assert best.is_constrained


def test_epochs_that_break_the_constraint_are_said_to_and_the_lowest_cross_entropy_of_them_is_kept():
    records = []
    strict = recipe_by_name("neighbours").training.controller.model_copy(update={"tau_ce": 1e-3})
    trainer = recipe_trainer("neighbours", Callbacks(on_record=records.append), max_epochs=6, controller=strict)
    best = trainer.run()
    asked = [r for r in records if r.get("event") == "validation"][1:]
    assert not any(r["feasible"] for r in asked)
    assert not best.is_feasible
    assert best.ce == min(r["ce"] for r in asked)


def test_an_untrained_head_is_sure_of_nothing_when_training_begins():
    trainer = recipe_trainer("transcoder")
    with torch.no_grad():
        trainer.model.heads["classify"].word_vectors.mul_(1e3)
    trainer.prepare()
    encoded = trainer.train.encode(trainer.model, list(range(8)))
    logits = trainer.model.decide(encoded.sparse_vector, "classify").logits
    assert logits.softmax(-1).max().item() < 0.9


@pytest.mark.parametrize("name", ["cis", "lexical_sae", "transcoder", "cajt"])
def test_a_seed_recipe_starts_with_about_twice_its_target_of_active_words(name):
    def active_at_start(**changes):
        trainer = recipe_trainer(name, active_target=4.0, **changes)
        trainer.prepare()
        trainer.model.eval()
        encoded = trainer.train.encode(trainer.model, range(len(TEXTS)))
        return (encoded.sparse_vector > 0).sum(-1).float().mean().item()

    assert 6 <= active_at_start() <= 10
    assert not 6 <= active_at_start(calibrated_start=None) <= 10, "the plain start knows nothing of the texts"


def test_a_run_that_begins_with_more_words_than_anyone_reads_says_so(monkeypatch, caplog):
    monkeypatch.setattr("lexical_sae.training.loop.CROWDED", 1)
    trainer = recipe_trainer("cis", max_epochs=2)
    trainer.run()
    (said,) = [record.getMessage() for record in caplog.records if "active at the first step" in record.getMessage()]
    assert "training.calibrated_start" in said


def test_without_terms_the_lowest_cross_entropy_is_chosen():
    records = []
    nothing = recipe_by_name("cis").training.objective.model_copy(update={"terms": ()})
    trainer = recipe_trainer("cis", Callbacks(on_record=records.append), max_epochs=8, objective=nothing)
    best = trainer.run()
    validations = [r for r in records if r.get("event") == "validation"]
    assert best.ce == min(r["ce"] for r in validations[2:])


def test_a_target_accuracy_sets_tau_even_in_a_warm_up_shorter_than_an_epoch():
    trainer = recipe_trainer("neighbours", target_accuracy=0.01, max_epochs=3)
    seen = []
    finish = trainer.geco.finish_warmup
    trainer.geco.finish_warmup = lambda level=None: seen.append(level) or finish(level)
    trainer.run()
    ((accuracy, ce),) = trainer.warmup_validations
    assert seen == [ce]
    assert trainer.geco.tau == ce
    assert accuracy >= 0.01


def test_a_target_accuracy_beside_a_given_tau_is_not_asked_for(caplog):
    settings = TrainingConfig().controller.model_copy(update={"tau_ce": 0.3})
    trainer = recipe_trainer("neighbours", target_accuracy=0.99, controller=settings, max_epochs=3)
    trainer.run()
    assert trainer.geco.tau == 0.3
    assert "was not reached" not in caplog.text


def test_a_start_at_less_than_a_word_is_a_start_at_one():
    trainer = recipe_trainer("neighbours", calibrated_start=1.0, active_target=0.4)
    trainer.prepare()
    some = trainer.train.encode(trainer.model, [0, 1, 2, 3]).sparse_vector
    assert (some > 0).any()


def test_validation_scores_the_averaged_weights_and_training_goes_on_with_its_own():
    trainer = recipe_trainer("cis", max_epochs=1)
    trainer.prepare()
    trainer._finish_epoch()
    learned = weights(trainer.model)
    scored = []
    plain_score = trainer._score
    trainer._score = lambda epoch: scored.append(weights(trainer.model)) or plain_score(epoch)
    trainer._validate()
    assert_bitwise_equal(weights(trainer.model), learned)
    assert any(not torch.equal(scored[0][name], learned[name]) for name in learned)
    assert_bitwise_equal(trainer.best_weights, scored[0])


def test_multipliers_move_once_per_optimizer_step_whatever_the_pieces():
    trainer = recipe_trainer("neighbours", batch_size=2, gradient_accumulation_steps=4, max_epochs=2)
    calls = []
    step = trainer.geco.step
    trainer.geco.step = lambda ce, active: calls.append((ce, active)) or step(ce, active)
    trainer.run()
    assert trainer.steps.micro.size == 2
    assert len(calls) == trainer.planned_steps - trainer.warmup_steps


def test_validation_has_the_label_smoothing_of_training():
    found = []
    for smoothing in (0.0, 0.3):
        trainer = recipe_trainer("cajt", label_smoothing=smoothing)
        trainer.prepare()
        found.append(trainer._score(0).ce)
    assert found[0] != pytest.approx(found[1])


def test_the_end_of_an_epoch_reaches_the_terms_and_patience_ends_the_run():
    trainer = recipe_trainer("cis", max_epochs=40, patience=2)
    ends = []
    plain_end = trainer.criterion.objective.end_of_epoch
    trainer.criterion.objective.end_of_epoch = lambda: ends.append(trainer.epoch) or plain_end()
    trainer.selection.take = lambda scores: _never_better(trainer.selection, scores)
    trainer.run()
    # Eight of warm-up, the first constrained one, and two without improvement.
    assert ends == list(range(1, 12))
    assert trainer.epoch == 11


def _never_better(selection, scores):
    """The first constrained epoch stays the best."""
    if selection.best is None or (scores.is_constrained and not selection.best.is_constrained):
        selection.best = scores
        return True
    selection.without_improvement += scores.is_constrained
    return False


def test_a_checkpoint_is_due_by_the_clock():
    saved = []
    trainer = recipe_trainer("neighbours", Callbacks(on_checkpoint=lambda state: saved.append(state["step"])))
    trainer.settings = trainer.settings.model_copy(update={"checkpoint_minutes": 1e-9})
    trainer.run()
    assert saved == list(range(1, 13))


@pytest.mark.parametrize("split", ["train", "validation"])
@pytest.mark.parametrize("changed", ["texts", "labels"])
def test_other_data_is_not_resumed_on(split, changed):
    trainer = recipe_trainer("neighbours")
    trainer.prepare()
    state = trainer.state_dict()
    other = recipe_trainer("neighbours")
    task = getattr(other, split)
    labels = task.labels.tolist()
    if changed == "texts":
        other_task = documents(other.model, TEXTS[1 : 1 + len(labels)], labels[: len(TEXTS) - 1])
    else:
        other_task = replace(task, labels=torch.tensor([1, *labels[1:]]))
    setattr(other, split, other_task)
    with pytest.raises(ValueError, match="the data is not what the run began with"):
        other.load_state_dict(state)


def test_other_tags_and_other_shapes_are_other_data():
    model = tiny.model()
    texts = tokenize(model.tokenizer, GOOD, 16)
    tags = [[IGNORED, *(0 for _ in ids[1:-1]), IGNORED] for ids in texts.ids]
    shapes = [torch.zeros(1, len(ids), 3, dtype=torch.bool) for ids in texts.ids]
    other_shapes = [*shapes[:2], ~shapes[2], shapes[3]]
    tasks = [
        Positions(texts, tags),
        Positions(texts, [*tags[:-1], [IGNORED, 1, *tags[-1][2:]]]),
        Positions(texts, tags, shapes=lambda rows: shapes[rows[0]]),
        Positions(texts, tags, shapes=lambda rows: other_shapes[rows[0]]),
    ]
    digests = [Trainer(model, task, tasks[0], TrainingConfig()).data_digest for task in tasks]
    assert len(set(digests)) == 4
    assert digests[0] == Trainer(model, Positions(texts, tags), tasks[0], TrainingConfig()).data_digest


def test_settings_are_written_into_terms_that_do_not_say_otherwise():
    terms = ({"kind": "completeness_kl"}, {"kind": "active_count", "target": 30.0})
    settings = TrainingConfig.model_validate(
        {"sparsity_target": 0.2, "active_target": 50.0, "objective": {"terms": terms}}
    )
    kl, count = settings.asked_of_circuits().terms
    assert (kl.fraction, count.target) == (0.2, 30.0)
    both = TrainingConfig.model_validate({"active_target": 7.0, "objective": {"terms": ["active_count", "frequency"]}})
    assert [getattr(t, "target", None) for t in both.asked_of_circuits().terms] == [7.0, None]
    assert both.asked_of_circuits().terms[1].least_frequency == pytest.approx(0.01)


def test_sense_slots_train_with_the_default_recipe():
    bank = tiny.wordpiece().convert_tokens_to_ids("good")
    parts = recipe_by_name("neighbours").model.model_copy(
        update={"expander": VirtualExpander.Config(token_ids=(bank,), num_senses=3)}
    )
    model = tiny.model(parts)
    model.start_from_backbone()
    update = {"max_epochs": 3, "batch_size": 8, "learning_rate": 1e-3, "active_target": 8.0}
    settings = recipe_by_name("neighbours").training.model_copy(update=update)
    assert Trainer(model, documents(model), documents(model), settings).run().ce < 10


@pytest.mark.parametrize("name", ["neighbours", "cajt", "cis", "anchored"])
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
    with pytest.raises(Interrupted, match=f"after step {stop_after} of {whole.planned_steps}"):
        first.run()
    torch.rand(17)
    second = recipe_trainer(name)
    second.load_state_dict(load_checkpoint(tmp_path).state)
    second.run()
    assert_bitwise_equal(weights(second.model), weights(whole.model))
    assert second.selection.best == whole.selection.best


PER_SAMPLE = {
    "neighbours": ("completeness_kl", "own_words"),
    "cis": ("completeness_ce", "hoyer"),
    "lexical_sae": ("completeness_ce", "l1_l0"),
    "transcoder": ("completeness_ce", "gate_l0"),
    "cajt": ("completeness_kl", "gate_l0"),
}


@pytest.mark.parametrize("name", list(PER_SAMPLE))
def test_accumulated_gradients_equal_those_of_the_whole_batch(name):
    """Per-sample terms at dropout 0, without random masking; the spread of the logits and the count are the batch's."""
    kept = []
    objective = recipe_by_name(name).training.objective
    terms = tuple(term for term in objective.terms if term.kind in PER_SAMPLE[name])
    assert len(terms) == 2
    for size in (8, 2, 1):
        optimizer = AdamWEMA.Config(schedule="constant", warmup=0.0, ema=None)
        trainer = recipe_trainer(
            name,
            batch_size=size,
            gradient_accumulation_steps=8 // size,
            optimizer=optimizer,
            objective=objective.model_copy(update={"terms": terms}),
            warmup_fraction=0.0,
            count=None,
            encoder_dropout=0.0,
        )
        trainer.model.masking = torch.nn.Identity()
        trainer.prepare()
        trainer.model.train()
        trainer.model.gate._watch = lambda _: None
        trainer.steps.micro.run(
            list(range(8)), lambda p, _, t=trainer: t.steps.backward(p, 8), trainer.optimizer.zero_grad
        )
        kept.append({name: p.grad.clone() for name, p in trainer.model.named_parameters() if p.grad is not None})
    for other in kept[1:]:
        for name, grad in kept[0].items():
            torch.testing.assert_close(other[name], grad, atol=1e-6, rtol=0)


def dropouts(model):
    return [part.p for part in model.backbone.encoder.modules() if isinstance(part, torch.nn.Dropout)]


def test_dropout_of_the_encoder_is_as_it_was_made_or_as_asked():
    assert set(dropouts(recipe_trainer("neighbours", encoder_dropout=None).model)) == {0.1}
    for share in (0.0, 0.3):
        trainer = recipe_trainer("neighbours", encoder_dropout=share)
        assert set(dropouts(trainer.model)) == {share}
    # What was made without, as attention is in a loaded backbone, stays without.
    next(part for part in trainer.model.backbone.encoder.modules() if isinstance(part, torch.nn.Dropout)).p = 0.0
    Trainer(trainer.model, trainer.train, trainer.validation, trainer.settings)
    assert set(dropouts(trainer.model)) == {0.0, 0.3}


def test_dropout_that_no_layer_could_give_is_refused():
    trainer = recipe_trainer("neighbours", encoder_dropout=0.0)
    settings = trainer.settings.model_copy(update={"encoder_dropout": 0.1})
    with pytest.raises(ValueError, match="this encoder was made without dropout"):
        Trainer(trainer.model, trainer.train, trainer.validation, settings)


def test_embeddings_stay_frozen_and_learn_on_request():
    for freeze in (True, False):
        trainer = recipe_trainer("neighbours", freeze_embeddings=freeze, max_epochs=1)
        before = trainer.model.backbone.decoder.weight.detach().clone()
        trainer.run()
        assert torch.equal(trainer.model.backbone.decoder.weight, before) == freeze


def test_every_group_of_parameters_moves_and_thresholds_too():
    trainer = recipe_trainer("neighbours")
    before = weights(trainer.model)
    trainer.prepare()
    trainer._finish_epoch()
    after = weights(trainer.model)
    word_vectors = "heads.classify.parametrizations.word_vectors"
    head = (f"{word_vectors}.original", f"{word_vectors}.0.projection", "heads.classify.class_weights")
    for name in ("gate.log_theta", "gate.offset", *head):
        assert not torch.equal(before[name], after[name]), name
    assert any(name.startswith("backbone.encoder") and not torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("name", list(RECIPES))
def test_every_parameter_that_learns_is_in_one_group(name):
    trainer = recipe_trainer(name)
    groups = trainer.steps.parameter_groups(1e-4)
    listed = [id(p) for group in groups for p in group.params]
    learning = [*trainer.model.parameters(), *trainer.criterion.parameters()]
    assert sorted(listed) == sorted(id(p) for p in learning if p.requires_grad)
    rates = {id(p): (group.lr, group.decays) for group in groups for p in group.params}
    gate = 1e-4 * trainer.settings.gate_rate
    assert {rates[id(p)] for p in trainer.model.gate.parameters()} == ({(gate, False)} if name in ASKING else set())


def test_a_lower_target_leaves_fewer_words_active():
    found = []
    for target in (3.0, 20.0):
        trainer = recipe_trainer("neighbours", active_target=target, max_epochs=15, calibrated_start=None)
        found.append(trainer.run().active_words)
    assert found[0] < 0.85 * found[1]


def test_a_range_test_finds_a_rate_and_leaves_no_trace():
    trainer = recipe_trainer("cis", learning_rate=None, calibrated_start=None)
    before = weights(trainer.model)
    trainer.prepare()
    assert_bitwise_equal(weights(trainer.model), before)
    assert 1e-6 <= trainer.optimizer.peak_rates[0] <= 1e-3


def test_a_range_test_that_is_interrupted_has_saved_nothing():
    trainer = recipe_trainer("cis", Callbacks(is_interrupted=lambda: True), learning_rate=None)
    with pytest.raises(StoppedBeforeSaving, match="before the first step"):
        trainer.run()


def test_an_automatic_batch_size_leaves_no_trace():
    trainer = recipe_trainer("cis", batch_size=None, calibrated_start=None)
    before = weights(trainer.model)
    trainer.prepare()
    assert_bitwise_equal(weights(trainer.model), before)
    assert trainer.steps.micro.size == 32


def test_a_loss_that_is_no_number_stops_with_an_explanation():
    trainer = recipe_trainer("neighbours")
    with torch.no_grad():
        trainer.model.heads["classify"].class_bias.fill_(torch.nan)
    with pytest.raises(FloatingPointError, match="at step 1 .*lower training.learning_rate"):
        trainer.run()


def test_nothing_to_learn_from_is_refused():
    model = tiny.model()
    with pytest.raises(ValueError, match="0 to learn from"):
        Trainer(model, documents(model, [], []), documents(model), TrainingConfig())
    texts = tokenize(model.tokenizer, GOOD, 16)
    tagged, untagged = (Positions(texts, [[tag] * len(ids) for ids in texts.ids]) for tag in (0, IGNORED))
    with pytest.raises(ValueError, match="got [1-9][0-9]* to learn from and 0 to validate on"):
        Trainer(model, tagged, untagged, TrainingConfig())


def test_positions_are_learned_by_the_same_loop():
    model = tiny.model(ModelConfig.model_validate({"gate": "drelu"}))
    texts = tokenize(model.tokenizer, TEXTS, 16)
    good = set(tiny.wordpiece().convert_tokens_to_ids(["good", "great", "wonderful"]))
    tags = [[IGNORED, *(int(i in good) for i in ids[1:-1]), IGNORED] for ids in texts.ids]
    task = Positions(texts, tags)
    asked = recipe_by_name("neighbours").training.objective
    settings = TrainingConfig(max_epochs=20, batch_size=8, learning_rate=1e-3, positions_per_step=5, objective=asked)
    best = Trainer(model, task, task, settings).run()
    assert best.accuracy > 0.95
    encoded = task.encode(model, [0, 1])
    assert len(encoded.labels) == sum(tag != IGNORED for row in tags[:2] for tag in row)


def test_pieces_of_tagged_texts_add_up_to_the_batch_and_may_be_empty():
    kept = []
    for size in (4, 1):
        model = tiny.model(ModelConfig.model_validate({"gate": "drelu"}))
        texts = tokenize(model.tokenizer, GOOD, 16)
        tags = [[IGNORED] * len(ids) for ids in texts.ids]
        tags[0][1:3], tags[1][1:5] = [0, 1], [1, 0, 1, 1]
        task = Positions(texts, tags)
        settings = TrainingConfig(batch_size=size, gradient_accumulation_steps=4 // size)
        trainer = Trainer(model, task, task, settings)
        for part in model.modules():
            if isinstance(part, torch.nn.Dropout):
                part.p = 0.0
        trainer.prepare()
        model.train()
        trainer.steps.micro.run(
            list(range(4)), lambda p, _, t=trainer: t.steps.backward(p, 6), trainer.optimizer.zero_grad
        )
        kept.append({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})
    for name, grad in kept[0].items():
        torch.testing.assert_close(kept[1][name], grad, atol=1e-6, rtol=0)


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


@pytest.mark.parametrize("is_first", [True, False])
def test_a_feasible_epoch_is_kept_whatever_an_infeasible_one_scores(is_first):
    # The infeasible epoch is better by cross-entropy and by circuits.
    kept, passed_over = scores(1, 0.5, 0.8), scores(2, 0.2, 0.1, feasible=False)
    selection = Selection(patience=2)
    for epoch in (kept, passed_over) if is_first else (passed_over, kept):
        selection.take(epoch)
    assert selection.best == kept


def test_a_run_that_asks_nothing_of_circuits_keeps_the_epoch_with_the_lowest_cross_entropy():
    selection = Selection(patience=2)
    assert [selection.take(scores(i, ce, 1 - ce, constrained=False)) for i, ce in enumerate((0.6, 0.3, 0.4))] == [
        True,
        True,
        False,
    ]


def test_context_is_kept_only_where_it_is_right_more_often_beyond_noise():
    def epoch(number, ce, gain, error=0.02):
        return EpochScores(number, ce, 0.7 + gain, 50.0, ce, True, True, gain=gain, gain_error=error)

    table = epoch(0, 0.60, 0.0, 0.0)
    # Cross-entropy falls, and the accuracy too, or it rises by what may be chance.
    for passed_over in (epoch(1, 0.50, -0.05), epoch(1, 0.50, 0.02), epoch(1, 0.50, 0.0, 0.0)):
        selection = Selection(patience=2)
        assert [selection.take(scores) for scores in (table, passed_over)] == [True, False]
    best = epoch(3, 0.65, 0.04)
    selection = Selection(patience=2)
    order = (table, epoch(1, 0.55, 0.03), epoch(2, 0.50, 0.01), best, epoch(4, 0.60, 0.035))
    assert [selection.take(scores) for scores in order] == [True, True, False, True, False]
    back = Selection(patience=2)
    back.load_state_dict(selection.state_dict())
    assert back.best == best


def test_patience_ends_a_run_but_not_in_the_warm_up():
    selection = Selection(patience=2)
    for epoch in range(1, 5):
        selection.take(scores(epoch, 1.0, float(epoch), constrained=False))
    assert not selection.is_over
    for epoch in range(5, 8):
        selection.take(scores(epoch, 1.0, 1.0))
    assert selection.is_over


OPINIONS = (("good", "great", "wonderful"), ("bad", "awful", "terrible", "boring"))


def opinions(count, seed):
    """Texts of drawn words, each with one that tells its label."""
    chance = random.Random(seed)
    others = [word for word in WORDS if word.isalpha() and not any(word in told for told in OPINIONS)]
    texts = [[*chance.choices(others, k=chance.randint(2, 8)), chance.choice(OPINIONS[i % 2])] for i in range(count)]
    return [" ".join(chance.sample(words, len(words))) for words in texts], [2 * (i % 2) for i in range(count)]


def active_words(batch_size, seed):
    """Of validation texts at the end of a run; batches of 128 still make more than a hundred steps."""
    torch.manual_seed(seed)
    model = recipe_model("neighbours")
    rate = 3e-4 * (batch_size / 8) ** 0.5
    update = {"max_epochs": 20, "batch_size": batch_size, "learning_rate": rate, "active_target": 6.0}
    settings = recipe_by_name("neighbours").training.model_copy(update=update)
    train, validation = documents(model, *opinions(768, seed=1)), documents(model, *opinions(256, seed=2))
    return Trainer(model, train, validation, settings, seed=seed).run().active_words


@pytest.mark.slow
def test_active_counts_do_not_depend_on_the_batch_size():
    """Means of three seeds: those of one differ by up to a twentieth without any reason but chance."""
    found = [sum(active_words(size, seed) for seed in range(3)) / 3 for size in (8, 32, 128)]
    assert max(found) - min(found) <= 0.05 * max(found), found


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps({name: curve(name) for name in RECIPES}, indent=1) + "\n")
