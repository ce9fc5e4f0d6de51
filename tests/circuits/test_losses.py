import math

import pytest
import torch
from hypothesis import given
from torch.nn.functional import cross_entropy

from lexical_sae.circuits import losses
from tests.strategies import sparse_vectors, tensors


@given(tensors(5, 3), tensors(5, 3))
def test_completeness_is_zero_only_if_the_circuit_decides_like_the_model(full, masked):
    assert losses.completeness_kl(full, full).item() == pytest.approx(0, abs=1e-12)
    expected = (full.softmax(-1) * (full.log_softmax(-1) - masked.log_softmax(-1))).sum(-1).mean()
    torch.testing.assert_close(losses.completeness_kl(full, masked), expected)


def test_the_full_model_does_not_learn_from_completeness():
    full, masked = torch.randn(4, 3, requires_grad=True), torch.randn(4, 3, requires_grad=True)
    losses.completeness_kl(full, masked).backward()
    assert full.grad is None
    assert masked.grad is not None
    assert masked.grad.abs().sum() > 0


def test_completeness_ce_is_the_cross_entropy_of_the_labels():
    logits, labels = torch.randn(4, 3), torch.tensor([0, 1, 2, 1])
    assert losses.completeness_ce(logits, labels) == cross_entropy(logits, labels)


def test_separation_is_the_mean_cosine_of_pairs_of_seen_classes():
    centroids = torch.tensor([[1.0, 0.0], [3.0, 3.0], [0.0, 2.0], [9.0, 0.0]])
    seen = torch.tensor([True, True, True, False])
    expected = (2 * math.sqrt(0.5) + 0) / 3
    assert losses.separation_cosine(centroids, seen).item() == pytest.approx(expected)


@pytest.mark.parametrize("seen", [[False, False], [True, False]])
def test_fewer_than_two_classes_give_no_separation_and_no_nan(seen):
    centroids = torch.rand(2, 4, requires_grad=True)
    loss = losses.separation_cosine(centroids, torch.tensor(seen))
    loss.backward()
    assert loss.item() == 0
    assert centroids.grad is not None
    assert centroids.grad.isfinite().all()


def test_contrastive_takes_the_hardest_seen_class_only():
    attr, labels = torch.tensor([[-3.0, 4.0, 0.0, 0.0]]), torch.tensor([0])
    centroids = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 5.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [3.0, 4.0, 0.0, 0.0]])
    seen = torch.tensor([True, True, True, False])  # the last would be the hardest
    loss = losses.separation_contrastive(attr, labels, centroids, seen, 0.3)
    assert loss.item() == pytest.approx(0.8 - 0.6 + 0.3)


def test_contrastive_teaches_the_sample_and_not_the_centroids():
    attr, centroids = torch.rand(3, 4, requires_grad=True), torch.rand(2, 4, requires_grad=True)
    seen = torch.ones(2, dtype=torch.bool)
    losses.separation_contrastive(attr, torch.tensor([0, 1, 0]), centroids, seen, 2.0).backward()
    assert attr.grad is not None
    assert attr.grad.abs().sum() > 0
    assert centroids.grad is None


def test_contrastive_counts_zero_where_there_is_nothing_to_compare():
    centroids, labels = torch.rand(3, 4), torch.tensor([0, 1])
    nobody = torch.tensor([True, False, False])
    assert losses.separation_contrastive(torch.rand(2, 4), labels, centroids, nobody, 0.3).item() == 0
    everybody = torch.tensor([True, True, True])
    empty = torch.zeros(2, 4, requires_grad=True)
    loss = losses.separation_contrastive(empty, labels, centroids, everybody, 0.3)
    loss.backward()
    assert loss.item() == 0
    assert empty.grad is not None
    assert empty.grad.isfinite().all()


def test_hoyer_runs_from_one_word_to_all_words():
    one, equal, none = torch.eye(9)[:1] * -4, torch.full((1, 9), 0.2), torch.zeros(1, 9)
    assert losses.hoyer(one).item() == pytest.approx(0, abs=1e-6)
    assert losses.hoyer(equal).item() == pytest.approx(1)
    assert losses.hoyer(none).item() == pytest.approx(0)


@given(sparse_vectors(4, 9))
def test_df_flops_ignores_scale_and_prefers_one_word(vectors):
    frequency = torch.linspace(0.1, 0.9, 9, dtype=torch.float64)
    loss = losses.df_flops(vectors, frequency)
    torch.testing.assert_close(losses.df_flops(7 * vectors, 0.5 * frequency), loss)
    q = frequency * vectors.mean(0)
    expected = q.sum() / (q.norm() * 3) if q.any() else torch.zeros((), dtype=torch.float64)
    torch.testing.assert_close(loss, expected)


@given(sparse_vectors(4, 9))
def test_l1_l0_is_the_formula_and_zero_without_words(vectors):
    expected = (vectors.sum(-1) + 0.1 * (2 * torch.sigmoid(10 * vectors) - 1).sum(-1)) / 9
    torch.testing.assert_close(losses.l1_l0(vectors), expected.mean())
    assert losses.l1_l0(torch.zeros(2, 9)).item() == 0


def test_frequency_penalty_pulls_log_thresholds_down_and_stops_at_the_floor():
    log_theta = torch.tensor([0.0, 1.0, -9.0, 3.0], requires_grad=True)
    flagged = torch.tensor([True, True, True, False])
    loss = losses.frequency_penalty(log_theta.exp(), flagged, lowest_threshold=math.exp(-2))
    loss.backward()
    assert loss.item() == pytest.approx((2 + 3 + 0) / 3, rel=1e-5)
    assert log_theta.grad is not None
    assert log_theta.grad.tolist() == pytest.approx([1 / 3, 1 / 3, 0, 0])
    assert losses.frequency_penalty(log_theta.exp(), torch.zeros(4, dtype=torch.bool), 0.1).item() == 0


def test_surplus_is_that_of_the_exact_count_and_learns_through_the_smooth_one():
    is_open = torch.tensor([[True] * 3 + [False] * 7, [True] * 5 + [False] * 5])
    assert losses.active_count(is_open).item() == 4
    for smooth in (0.01, 0.9):
        open_prob = torch.full((2, 10), smooth, requires_grad=True)
        surplus = losses.active_surplus(is_open, open_prob, 2)
        surplus.backward()
        assert surplus.item() == pytest.approx(1)
        assert open_prob.grad is not None
        assert open_prob.grad.unique().tolist() == pytest.approx([1 / 2 / 2])
        assert losses.active_surplus(is_open, open_prob, 4).item() == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_exactly_as_many_words_as_wanted_pull_on_nothing_however_the_smooth_count_rounds(dtype):
    for wanted in range(1, 40):
        open_prob = torch.rand(8, 40, dtype=dtype, requires_grad=True)
        is_open = torch.arange(40).expand(8, 40) < wanted
        losses.active_surplus(is_open, open_prob, float(wanted)).backward()
        assert open_prob.grad is not None
        assert not open_prob.grad.any()


def test_own_words_are_pulled_up_to_the_margin_and_no_further():
    excess = torch.tensor([[0.4, 3.0, -9.0], [-2.0, -torch.inf, 0.0]], requires_grad=True)
    own = torch.tensor([[True, True, False], [False, False, False]])
    loss = losses.own_words(excess, own, margin=1.0)
    loss.backward()
    assert loss.item() == pytest.approx(0.6 / 2 / 2)
    assert excess.grad is not None
    assert (excess.grad != 0).tolist() == [[True, False, False], [False] * 3]


def _per_sample_losses():
    labels, seen = torch.tensor([0, 1, 2, 0, 1, 2]), torch.tensor([True, True, True])
    centroids = torch.rand(3, 9)
    attr, logits, other = torch.randn(6, 9), torch.randn(6, 3), torch.randn(6, 3)
    is_open = torch.rand(6, 9) < 0.5
    return {
        "completeness_ce": lambda r: losses.completeness_ce(logits[r], labels[r]),
        "completeness_kl": lambda r: losses.completeness_kl(logits[r], other[r]),
        "contrastive": lambda r: losses.separation_contrastive(attr[r], labels[r], centroids, seen, 0.3),
        "hoyer": lambda r: losses.hoyer(attr[r]),
        "l1_l0": lambda r: losses.l1_l0(attr[r].relu()),
        "gate_l0": lambda r: losses.gate_l0(attr[r].sigmoid()),
        "own_words": lambda r: losses.own_words(attr[r], is_open[r], 1.0),
    }


@pytest.mark.parametrize("name", _per_sample_losses())
def test_a_per_sample_loss_of_a_batch_is_the_mean_over_its_parts(name):
    loss = _per_sample_losses()[name]
    whole = loss(torch.arange(6))
    parts = (loss(torch.arange(2)) * 2 + loss(torch.arange(2, 6)) * 4) / 6
    torch.testing.assert_close(whole, parts)
