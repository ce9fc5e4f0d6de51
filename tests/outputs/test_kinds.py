"""Losses, gradients and decisions of every output kind, on numbers that can be checked by hand."""

import numpy as np
import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from lexical_sae.outputs import CLASSES, OUTPUTS, Labels, Number
from lexical_sae.outputs.labels import best_threshold
from lexical_sae.utils.errors import DataError, SettingsError

LABELS = {
    "classes": [0, 2, 1, 2, 2],
    "labels": [(1, 0, 0), (0, 1, 1), (0, 0, 0), (1, 1, 0), (0, 0, 1)],
    "number": [1.0, 5.0, 2.0, 2.5, 4.0],
}
COLUMNS = {"classes": 3, "labels": 3, "number": 1}
KINDS = sorted(OUTPUTS)
SMALL, LARGE = 3.0, 2.0


def given(kind):
    """The fitted kind, logits in double precision, and targets."""
    output = OUTPUTS[kind].fitted(LABELS[kind])
    logits = torch.randn(5, COLUMNS[kind], dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return output, logits, output.targets(LABELS[kind])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", [None, (0.5, 1.0, 2.0, 0.5, 1.0)])
def test_the_table_minimises_the_same_loss_as_training_and_its_gradient_is_right(kind, weights):
    output, logits, targets = given(kind)
    shares = None if weights is None else np.array(weights) / np.sum(weights)
    logits.requires_grad_()
    counts = None if weights is None else 5 * torch.from_numpy(shares)
    loss = output.loss(logits, targets, counts)
    (gradient,) = torch.autograd.grad(loss, logits)
    found, pull = output.table_loss(logits.detach().numpy(), targets.numpy(), shares)
    assert found == pytest.approx(loss.item(), rel=1e-6)
    np.testing.assert_allclose(pull, gradient.numpy(), atol=1e-7)
    losses = output.text_losses(logits.detach().numpy(), targets.numpy())
    assert np.average(losses, weights=weights) == pytest.approx(found)
    assert gradient.abs().sum() > 0


@pytest.mark.parametrize("kind", KINDS)
def test_no_constant_prediction_has_less_loss_than_guessing(kind):
    output, _, targets = given(kind)
    statistics = output.statistics(targets, None, COLUMNS[kind]).double()
    least = output.guessing_loss(statistics) / 5
    constant = torch.zeros(1, COLUMNS[kind], dtype=torch.float64, requires_grad=True)
    step = torch.optim.LBFGS([constant], max_iter=200, line_search_fn="strong_wolfe")

    def closure():
        step.zero_grad()
        loss = output.loss(constant.expand(5, -1), targets)
        loss.backward()
        return loss

    step.step(closure)
    assert closure().item() == pytest.approx(least, abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pupil_that_decides_like_its_teacher_has_nothing_to_learn_and_the_teacher_never_learns(kind):
    output, logits, _ = given(kind)
    teacher, pupil = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    same = output.imitation(teacher, pupil)
    assert same.item() == pytest.approx(0, abs=1e-7)
    other = output.imitation(teacher, (pupil.flip(0) if kind == "number" else pupil + torch.randn_like(pupil)))
    other.backward()
    assert other.item() > 0
    assert teacher.grad is None
    assert pupil.grad is not None
    assert pupil.grad.abs().sum() > 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_direction_and_its_offset_give_what_is_explained(kind):
    output, logits, _ = given(kind)
    targets = output.default_target(logits, None)
    explained = output.offset() + (output.direction(logits, targets) * logits).sum(-1)
    expected = {
        "classes": lambda: logits.amax(-1) - logits.mean(-1),
        "labels": lambda: logits.amax(-1),
        "number": lambda: torch.tensor(output.decided(logits, ("stars",)), dtype=torch.float64),
    }
    torch.testing.assert_close(explained, expected[kind]())


def test_labels_decide_by_their_own_thresholds():
    output = Labels(thresholds=(-1.0, 2.0))
    logits = torch.tensor([[-0.5, 1.0], [0.0, 3.0], [-2.0, -2.0]])
    assert output.decided(logits, ("a", "b")) == [("a",), ("a", "b"), ()]
    assert [output.written(made) for made in output.decided(logits, ("a", "b"))] == ["a", "a, b", "none"]
    # The nearest to its threshold, not the most probable.
    assert output.default_target(torch.tensor([[-0.5, 1.9]]), None).tolist() == [0]


def test_a_threshold_is_that_of_the_best_f1_on_validation():
    logits, gold = np.arange(-20.0, 0.0), np.arange(20) >= 13
    assert best_threshold(logits, gold) == -7.5
    # Too few to choose from.
    assert best_threshold(logits, np.arange(20) >= 17) == 0.0
    # Of equally good ones the nearest to a half.
    assert best_threshold(np.array([-9.0] * 9 + [9.0] * 9), np.arange(18) >= 9) == 0.0


def test_a_threshold_is_better_than_any_other_cut():
    draw = np.random.default_rng(0)
    for _ in range(20):
        logits = draw.normal(size=60).round(1)
        gold = logits + draw.normal(size=60) > 0.8

        def f1(cut, logits=logits, gold=gold):
            return 2 * (gold & (logits > cut)).sum() / max(1, gold.sum() + (logits > cut).sum())

        chosen = f1(best_threshold(logits, gold))
        assert chosen == pytest.approx(max(f1(cut) for cut in np.linspace(-5, 5, 1001)))


def test_labels_are_not_smoothed():
    output, logits, targets = given("labels")
    plain = binary_cross_entropy_with_logits(logits, targets.double(), reduction="none").sum(-1).mean()
    torch.testing.assert_close(output.loss(logits, targets, smoothing=0.5), plain)


def test_numbers_are_scaled_by_those_of_training():
    output = Number().fitted([1.0, 3.0, 5.0, 3.0])
    assert output.centre == 3.0
    assert output.spread == pytest.approx(2**0.5)
    torch.testing.assert_close(output.targets([3.0, 3.0 + 2**0.5]), torch.tensor([0.0, 1.0]))
    torch.testing.assert_close(output.numbers(torch.tensor([[1.0]])), torch.tensor([3.0 + 2**0.5], dtype=torch.float64))
    assert Number(centre=250_000, spread=90_000).written(123456.7) == "123,457"
    with pytest.raises(DataError, match="nothing to learn"):
        Number().fitted([0.1, 0.1, 0.1])
    with pytest.raises(SettingsError, match="no probability"):
        output.probabilities(torch.zeros(1, 1))


def test_classes_are_what_they_were():
    logits = torch.randn(7, 4)
    assert torch.equal(CLASSES.probabilities(logits), logits.softmax(-1))
    assert torch.equal(CLASSES.quality(logits, torch.arange(7) % 4), logits.argmax(-1) == torch.arange(7) % 4)
    rows = np.random.default_rng(0).normal(size=(5, 3))
    assert (CLASSES.anchored(rows) == rows - rows.mean(-1, keepdims=True)).all()
