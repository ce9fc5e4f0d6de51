import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from lexical_sae.evaluation.metrics.probe_loss import (
    RIDGE,
    _halves,
    _part,
    compute_probe_loss,
    fit_word_probes,
    probe_losses,
)
from lexical_sae.evaluation.text_sample import TextSampler
from lexical_sae.models.sparse_code import SparseCode
from tests.evaluation.corpora import random_head
from tests.evaluation.planted_circuits import fed, planted_head, planted_texts, some_vectors


def test_probes_are_the_best_of_their_kind():
    vectors, positive = some_vectors(40), torch.arange(40) % 3 == 0
    code = SparseCode.from_dense(vectors)
    slope, bias = fit_word_probes(code, positive)
    losses = probe_losses(code, positive, slope, bias)
    y = positive.double().numpy()
    for word in range(vectors.shape[1]):
        x = vectors[:, word].numpy()

        def penalised(theta, x=x):
            odds = theta[0] * x + theta[1]
            return np.sum(np.logaddexp(0, odds) - y * odds) + RIDGE * len(x) * theta[0] ** 2 / 2

        best = minimize(penalised, np.zeros(2), tol=1e-12).x
        assert (float(slope[word]), float(bias[word])) == pytest.approx(tuple(best), abs=1e-4)
        odds = best[0] * x + best[1]
        assert float(losses[word]) == pytest.approx(np.mean(np.logaddexp(0, odds) - y * odds), abs=1e-6)


def sample_of(head, vectors, labels, seed=0):
    return fed(TextSampler(1000, seed), head, vectors, labels).sample()


def test_planted_words_are_found():
    vectors, labels = planted_texts(120)
    found = compute_probe_loss(sample_of(planted_head(), vectors, labels), ("x", "y", "z"), "word{}".format)
    assert [one.word for one in found.classes] == ["word3", "word10", "word20"]
    assert found.loss < 0.5 * found.base_loss
    assert found.base_loss == pytest.approx(-(np.log(1 / 3) / 3 + np.log(2 / 3) * 2 / 3), abs=1e-6)
    assert found.texts == 60


def test_labels_by_lot_cannot_be_read():
    labels = np.random.default_rng(0).integers(2, size=400).tolist()
    head = random_head(classes=2)
    found = compute_probe_loss(sample_of(head, some_vectors(400), labels), ("x", "y"), str)
    assert [one.label for one in found.classes] == ["y"]
    assert found.loss > found.base_loss - 0.02


def test_a_word_that_tells_all_has_a_finite_probe():
    vectors = torch.zeros(40, 3, dtype=torch.float64)
    vectors[::2, 1] = 1
    slope, bias = fit_word_probes(SparseCode.from_dense(vectors), torch.arange(40) % 2 == 0)
    assert slope.isfinite().all()
    assert bias.isfinite().all()
    assert slope[1] > 2


def test_few_texts_or_one_class_tell_nothing():
    head = random_head(classes=2)
    assert compute_probe_loss(sample_of(head, some_vectors(19), [0] * 19), ("x", "y"), str) is None
    assert compute_probe_loss(sample_of(head, some_vectors(40), [0] * 40), ("x", "y"), str) is None


def test_labels_that_alternate_are_probed_like_any_others():
    vectors, labels = planted_texts(120)
    vectors[:, [3, 4, 10, 11]] = 0
    labels = [row % 2 for row in range(120)]
    vectors[1::2, 10] = 1.0
    found = compute_probe_loss(sample_of(planted_head(), vectors, labels), ("x", "y", "z"), "word{}".format)
    assert [(one.label, one.word) for one in found.classes] == [("x", "word10"), ("y", "word10")]
    shuffled = torch.randperm(120, generator=torch.Generator().manual_seed(0))
    other = sample_of(planted_head(), vectors[shuffled], [labels[row] for row in shuffled.tolist()])
    again = compute_probe_loss(other, ("x", "y", "z"), "word{}".format)
    assert (found.loss, found.base_loss) == pytest.approx((again.loss, again.base_loss), abs=1e-6)


def test_both_halves_have_every_class_that_has_two_texts():
    labels = [0] * 31 + [1] * 2 + [2] * 27
    sample = sample_of(random_head(), some_vectors(60), labels)
    halves = _halves(sample)
    assert sorted(halves[0] + halves[1]) == list(range(60))
    for label, count in enumerate((31, 2, 27)):
        for half in halves:
            assert sum(labels[place] == label for place in half) in (count // 2, count - count // 2)
    assert halves != _halves(sample_of(random_head(), some_vectors(60), labels, seed=1)), "at random, not by place"


def test_the_word_is_chosen_on_one_half_and_its_loss_is_that_on_the_other():
    labels = np.random.default_rng(0).integers(2, size=60).tolist()
    sample = sample_of(random_head(classes=2), some_vectors(60), labels)
    (own,) = compute_probe_loss(sample, ("x", "y"), str).classes
    (fit, chooses), (held, reports) = (_part(sample, half) for half in _halves(sample))
    probes = fit_word_probes(fit, chooses == 1)
    best = int(probe_losses(fit, chooses == 1, *probes).argmin())
    assert own.word == str(best)
    assert own.loss == pytest.approx(float(probe_losses(held, reports == 1, *probes)[best]))


def test_the_gain_is_the_difference_of_losses_with_an_interval():
    vectors, labels = planted_texts(120)
    # Texts that gain alike would have an interval as wide as rounding is.
    vectors = vectors * (1 + torch.arange(120) % 5)[:, None] / 3
    found = compute_probe_loss(sample_of(planted_head(), vectors, labels), ("x", "y", "z"), str)
    assert found.gain.mean == pytest.approx(found.base_loss - found.loss)
    assert 0 < found.gain.low < found.gain.mean - 0.01 < found.gain.high - 0.02
    at_random = np.random.default_rng(0).integers(2, size=400).tolist()
    nothing = compute_probe_loss(sample_of(random_head(classes=2), some_vectors(400), at_random), ("x", "y"), str)
    assert nothing.gain.low < 0
    assert nothing.gain.count == nothing.texts == 200


@pytest.mark.parametrize("activation", [0.1, 3.0, 8.0, 100.0])
def test_a_rare_class_is_read_from_its_word_however_strong_that_is(activation):
    positive = torch.arange(400) % 20 == 0
    vectors = torch.zeros(400, 2, dtype=torch.float64)
    vectors[positive, 0] = activation
    vectors[[1, 2, 3], 0] = activation
    vectors[::7, 1] = activation
    code = SparseCode.from_dense(vectors)
    slope, bias = fit_word_probes(code, positive)
    losses = probe_losses(code, positive, slope, bias)
    assert losses[0] < losses[1]
    # At the lowest point there is no slope: exact for a convex loss.
    odds = slope * vectors + bias
    residual = odds.sigmoid() - positive[:, None].double()
    assert residual.sum(0).abs().max() < 1e-6
    assert ((residual * vectors).sum(0) + RIDGE * len(vectors) * slope).abs().max() < 1e-6 * max(1.0, activation)
