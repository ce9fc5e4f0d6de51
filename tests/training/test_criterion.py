import dataclasses
import math
import types

import pytest
import torch

from lexical_sae.circuits.terms import FrequencyPenalty
from lexical_sae.data import TaggedSplit
from lexical_sae.data.batches import tokenize
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.lexical_sae import TAG
from lexical_sae.outputs.classes import guessing_ce
from lexical_sae.training.loss.criterion import NOTHING, Criterion, PieceLoss
from lexical_sae.training.settings import TrainingConfig
from lexical_sae.training.tasks import Documents, positions
from tests import tiny
from tests.circuits import views
from tests.tiny import BAD, GOOD

GATES = ("drelu", "gated_jumprelu", "jumprelu")


def documents(model):
    return Documents(tokenize(model.tokenizer, GOOD + BAD, 16), torch.tensor([0] * 4 + [2] * 4))


def criterion(model, **settings):
    """What is asked of documents by settings that are the schema's but for these."""
    return Criterion(model, "classify", TrainingConfig.model_validate(settings), (1, 1, 1)).train()


def pull_of_the_count(gate, num_open, excess, others):
    """How a count constraint at 8 words pulls on the logits of open words, and on all; and the smooth count."""
    model = views.model(gate)
    task = documents(model)
    excesses = torch.full((8, len(model.dimensions)), others)
    words = (~model.gate.closed).nonzero().flatten()[:num_open]
    excesses[:, words] = excess
    logits = (excesses + model.gate.thresholds().detach()).requires_grad_()
    encoded = dataclasses.replace(task.encode(model, range(8)), gate=model.gate(logits))
    assert (encoded.gate.gate_mask > 0.5).sum(-1).unique().tolist() == [num_open]
    asked = criterion(model, active_target=8.0, count={})
    loss, _ = asked.loss(model, encoded, share=1.0, is_constrained=False)
    (pull,) = torch.autograd.grad(loss, logits, materialize_grads=True)
    return pull[:, words], pull, encoded.gate.open_prob.sum(-1).mean()


@pytest.mark.parametrize("gate", GATES)
def test_the_count_constraint_closes_nothing_while_too_few_words_are_open(gate):
    _, pull, smooth = pull_of_the_count(gate, num_open=4, excess=2.0, others=-0.5)
    assert smooth > 8, "the many that are nearly open would be counted"
    assert not pull.any()


@pytest.mark.parametrize("gate", GATES)
def test_the_count_constraint_closes_words_while_too_many_are_open(gate):
    pull, _, smooth = pull_of_the_count(gate, num_open=12, excess=0.01, others=-20.0)
    assert smooth < 8, "words that are barely open would hardly be counted"
    assert (pull > 0).all()


def test_rare_words_get_lower_thresholds_through_the_criterion():
    model = views.model("jumprelu")
    encoded = documents(model).encode(model, range(8))
    terms = [{"kind": "frequency", "quiet_steps": 0, "least_frequency": 0.6, "lowest_threshold": 0.01}]
    asked = criterion(model, objective={"terms": terms})
    _, seen = asked.loss(model, encoded, share=1.0, is_constrained=True)
    (pull,) = torch.autograd.grad(asked.ask(model, encoded).total, model.gate.log_theta)
    share = (encoded.gate.gate_mask > 0.5).float().mean(0)
    rare = (share > 0) & (share < 0.6)
    assert 0 < rare.sum() < (share > 0).sum()
    assert seen.terms["frequency"] == pytest.approx(math.log(0.5 / 0.01), rel=1e-5)
    torch.testing.assert_close(pull, rare / rare.sum())


def test_words_within_reach_that_stay_closed_are_candidates_for_a_lower_threshold():
    parts = {"gate": {"kind": "jumprelu", "initial_threshold": 2.0}, "neighbourhood": {"words_per_token": 4}}
    model = tiny.model(ModelConfig.model_validate(parts))
    model.start_from_backbone()
    encoded = documents(model).encode(model, range(8))
    asked = criterion(model, objective={"terms": ["frequency"]})
    asked.ask(model, encoded)
    term = asked.objective.terms["frequency"]
    assert isinstance(term, FrequencyPenalty)
    opened = (encoded.gate.gate_mask > 0.5).any(0)
    assert encoded.in_reach is not None
    assert (encoded.in_reach & ~opened).any()
    assert torch.equal(term.tracker.live_now, encoded.in_reach | opened)


@pytest.mark.parametrize(("share", "most"), [(1.0, 5), (0.5, 2), (0.01, 1)])
def test_circuits_are_asked_for_at_no_more_samples_than_the_settings_say(share, most):
    model = views.model()
    asked = criterion(model, objective={"terms": ["gate_l0"]}, positions_per_step=5)
    seen = []
    ask = asked.ask
    asked.ask = lambda model, encoded, **others: seen.append(len(encoded.labels)) or ask(model, encoded, **others)
    asked.loss(model, documents(model).encode(model, range(8)), share=share, is_constrained=True)
    assert seen == [most]


def test_what_is_counted_is_what_is_pushed_down_so_shapes_are_not_words():
    settings = ModelConfig.model_validate({"shapes": {}, "gate": "drelu"})
    model = tiny.model(settings)
    split = TaggedSplit((("The", "Film", "IS", "good"),), (("O", "B-PER", "O", "O"),))
    task, _ = positions(model.tokenizer, split, model.labels[TAG], 16, model.shapes)
    asked = Criterion(model, TAG, TrainingConfig(), (1, 1, 1)).train()
    _, seen = asked.loss(model, task.encode(model, [0]), share=1.0, is_constrained=False)
    encoded = task.encode(model, [0])
    shapes = (encoded.sparse_vector > 0).sum(-1) - (encoded.gate.gate_mask > 0.5).sum(-1)
    assert shapes.max() > 0
    assert seen.active - seen.words == pytest.approx(float(shapes.float().mean()), abs=1e-5)
    stepped = []
    asked.count = types.SimpleNamespace(step=stepped.append)
    asked.end_of_step([seen], is_constrained=False)
    assert stepped == [seen.words]


def test_the_constraint_on_cross_entropy_is_told_of_words_and_not_of_shapes():
    model = views.model()
    asked = criterion(model, objective={"terms": ["gate_l0"]})
    told = []
    asked.geco = types.SimpleNamespace(step=lambda ce, words: told.append((ce, words)))
    piece = PieceLoss(share=0.5, ce=0.7, active=30.0, words=20.0, terms={"gate_l0": 0.1})
    asked.end_of_step([piece, piece], is_constrained=True)
    assert told == [(0.7, 20.0)]


def test_a_step_without_a_labelled_word_moves_nothing():
    asked = criterion(views.model(), count={})
    before = asked.count.state_dict()
    assert asked.end_of_step([NOTHING, NOTHING], is_constrained=False) == NOTHING
    assert asked.count.state_dict() == before
    assert asked.geco.state_dict() == criterion(views.model()).geco.state_dict()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_guessing_has_the_cross_entropy_of_the_constant_prediction_that_fits_best(smoothing):
    labels = torch.tensor([0] * 5 + [1] * 2 + [3])
    expected = guessing_ce(labels.bincount(minlength=4).double(), smoothing) / len(labels)
    logits = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([logits], max_iter=500, tolerance_grad=1e-12, tolerance_change=0)

    def constant_ce():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(logits.expand(8, 4), labels, label_smoothing=smoothing)
        loss.backward()
        return loss

    optimizer.step(constant_ce)
    assert constant_ce().item() == pytest.approx(expected, abs=1e-4)
    assert guessing_ce(torch.full((4,), 5.0), smoothing) == pytest.approx(20 * math.log(4))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_without_an_active_word_validation_is_no_better_than_guessing(smoothing):
    model = views.model("drelu")
    asked = criterion(model, label_smoothing=smoothing)
    task = documents(model)
    with torch.no_grad():
        # The prior of the labels, as a trained bias would have it.
        model.heads["classify"].class_bias.copy_(torch.tensor([0.5, 1e-6, 0.5]).log())
        model.gate.theta.fill_(1e6)
    found = asked.validate(model, task)
    assert found["active_words"] == 0
    # Smoothed labels keep some of the third class, which this prior leaves out.
    slack = 1e-4 if smoothing == 0 else 1.0
    assert 0 <= found["ce"] - found["guessing_ce"] + 1e-6 < slack
    prior = (1 - smoothing) * torch.tensor([0.5, 0.0, 0.5], dtype=torch.float64) + smoothing / 3
    assert found["guessing_ce"] == pytest.approx(torch.special.entr(prior).sum().item())
