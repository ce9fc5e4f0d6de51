import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge

from lexical_sae.outputs import CLASSES, Labels, Number
from lexical_sae.training.loss.auxiliary_head import AuxiliaryHead
from lexical_sae.training.preparation import linear_start
from lexical_sae.training.preparation.linear_start import regression_on_states


def planted(texts=60, width=6, seed=0):
    """States whose first coordinates tell one of three classes, and say so in other units than the rest."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 3, texts)
    spread = np.linspace(0.1, 5, width)
    states = draw.normal(size=(texts, width)) * spread + 7
    states[:, :3] += 2 * spread[:3] * np.eye(3)[labels]
    return torch.from_numpy(states).float(), torch.from_numpy(labels), torch.from_numpy(draw.integers(0, 5, texts))


def started(states, targets, folds, output=CLASSES, weights=None, outputs=3):
    head = AuxiliaryHead.Config().build(states.shape[1], outputs).eval()
    regression_on_states(states, targets, folds, output, outputs, weights).start(head)
    return head


@pytest.mark.parametrize("weighted", [False, True])
def test_it_begins_at_the_logistic_regression_of_scaled_states(monkeypatch, weighted):
    states, labels, folds = planted()
    weights = torch.linspace(0.5, 3, len(labels), dtype=torch.float64) if weighted else None
    monkeypatch.setattr(linear_start, "STRENGTHS", (0.1,))
    head = started(states, labels, folds, weights=weights)
    X = states.double().numpy()
    X = (X - X.mean(0)) / X.std(0)
    counts = None if weights is None else (weights / weights.mean()).numpy()
    expected = LogisticRegression(C=0.1, tol=1e-10, max_iter=10_000).fit(X, labels.numpy(), counts)
    found = head.logits(states).softmax(-1).detach().numpy()
    np.testing.assert_allclose(found, expected.predict_proba(X), atol=2e-3)
    assert not np.allclose(found, 1 / 3, atol=0.1)


def test_of_numbers_it_begins_at_the_ridge_regression(monkeypatch):
    states, labels, folds = planted()
    numbers = labels.float() - 1
    monkeypatch.setattr(linear_start, "STRENGTHS", (0.1,))
    head = started(states, numbers, folds, Number(), outputs=1)
    X = states.double().numpy()
    expected = Ridge(alpha=1 / 0.1).fit((X - X.mean(0)) / X.std(0), numbers.numpy())
    X = (X - X.mean(0)) / X.std(0)
    np.testing.assert_allclose(head.logits(states)[:, 0].detach().numpy(), expected.predict(X), atol=2e-3)


def test_any_number_of_labels_are_told_apart_one_by_one():
    states, labels, folds = planted()
    several = torch.nn.functional.one_hot(labels, 3).float()
    several[:, 2] = several[:, :2].sum(1)
    head = started(states, several, folds, Labels())
    right = ((head.logits(states) > 0) == (several > 0.5)).float().mean(0)
    assert right.min() > 0.7


def test_texts_that_are_left_out_choose_the_prior(monkeypatch):
    """States that tell nothing are held back, states that tell the class are not."""
    states, labels, folds = planted(200)
    monkeypatch.setattr(linear_start, "STRENGTHS", (1e-5, 1.0))
    telling = started(states, labels, folds)
    told_nothing = started(states, labels[torch.randperm(200, generator=torch.Generator().manual_seed(1))], folds)
    assert telling.layer.weight.abs().max() > 20 * told_nothing.layer.weight.abs().max()


def test_what_is_dropped_at_random_does_not_move_the_mean_text():
    states, labels, folds = planted()
    head = AuxiliaryHead.Config(dropout=0.5).build(6, 3)
    regression_on_states(states, labels, folds, CLASSES, 3).start(head)
    mean = states.double().mean(0, keepdim=True).float()
    torch.testing.assert_close(head.train().logits(mean), head.eval().logits(mean), atol=1e-4, rtol=0)


def test_its_quality_is_that_on_texts_left_out():
    states, labels, folds = planted(200)
    assert regression_on_states(states, labels, folds, CLASSES, 3).quality > 0.7
    chance = labels[torch.randperm(200, generator=torch.Generator().manual_seed(1))]
    # On its own texts a regression on as many numbers as texts is right anywhere.
    wide = torch.cat([states, torch.randn(200, 300, generator=torch.Generator().manual_seed(2))], 1)
    assert regression_on_states(wide, chance, folds, CLASSES, 3).quality < 0.5
