import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.models.circuit_state import circuit_mask, circuit_size
from tests.strategies import sparse_vectors, tensors

HARD = math.inf


def chosen_by_hand(attr: list[float], active: list[bool], fraction: float) -> set[int]:
    words = [j for j, is_active in enumerate(active) if is_active]
    if not words:
        return set()
    k = max(1, round(fraction * len(words)))
    return set(sorted(words, key=lambda j: (-abs(attr[j]), j))[:k])


@given(sparse_vectors(5, 11), tensors(5, 11), st.sampled_from([0.1, 0.25, 0.5, 1.0]), st.booleans())
def test_hard_mask_keeps_exactly_the_k_largest_active_words(vectors, weights, fraction, with_ties):
    attr = vectors * weights
    attr = attr.round() if with_ties else attr
    mask = circuit_mask(attr, vectors != 0, fraction, HARD)
    for row in range(5):
        expected = chosen_by_hand(attr[row].tolist(), (vectors[row] != 0).tolist(), fraction)
        assert set(mask[row].nonzero().flatten().tolist()) == expected


@given(sparse_vectors(6, 11), tensors(6, 11), st.sampled_from([0.1, 0.5, 1.0]))
def test_soft_mask_is_the_formula_of_each_sample(vectors, weights, fraction):
    attr = vectors * weights
    mask = circuit_mask(attr, vectors != 0, fraction, 10.0)
    for row in range(6):
        sizes = attr[row, vectors[row] != 0].abs().sort(descending=True).values
        expected = torch.zeros(11, dtype=torch.float64)
        if len(sizes):
            k = max(1, round(fraction * len(sizes)))
            threshold = (sizes[k - 1] + (sizes[k] if k < len(sizes) else 0)) / 2
            expected = torch.sigmoid(10 * (attr[row].abs() - threshold) / sizes.mean()) * (vectors[row] != 0)
        torch.testing.assert_close(mask[row], expected)


@given(sparse_vectors(4, 11), tensors(4, 11))
def test_a_very_high_temperature_is_the_hard_mask(vectors, weights):
    attr, active = vectors * weights, vectors != 0
    torch.testing.assert_close(circuit_mask(attr, active, 0.3, 1e9), circuit_mask(attr, active, 0.3, HARD))


def test_at_realistic_sparsity_most_of_the_text_is_ablated():
    # Counting k over the vocabulary gives k = 3,052 > 120: threshold 0, and nothing would be ablated.
    attr, active = torch.zeros(2, 30_522), torch.zeros(2, 30_522, dtype=torch.bool)
    active[:, 1000:1120] = True
    attr[active] = torch.randn(240)
    assert circuit_size(active, 0.1).tolist() == [12, 12]
    soft, hard = circuit_mask(attr, active, 0.1, 10.0), circuit_mask(attr, active, 0.1, HARD)
    assert hard.sum(-1).tolist() == [12, 12]
    assert soft.sum(-1).tolist() == pytest.approx([12, 12], abs=4)
    assert ((soft > 0.05).sum(-1) < 40).all()


def test_samples_without_active_words_give_zeros_and_finite_gradients():
    attr = torch.zeros(2, 3, 5, requires_grad=True)
    active = torch.zeros(2, 3, 5, dtype=torch.bool)
    active[1] = True  # active, but all contributions zero
    mask = circuit_mask(attr, active, 0.1, 10.0)
    mask.sum().backward()
    assert (mask[0] == 0).all()
    assert mask.isfinite().all()
    assert attr.grad is not None
    assert attr.grad.isfinite().all()
    assert (circuit_mask(attr, active, 0.1, HARD)[0] == 0).all()


@pytest.mark.parametrize("leading", [(), (2,), (2, 3)])
@pytest.mark.parametrize("temperature", [10.0, HARD])
def test_any_leading_dimensions_work_sample_by_sample(leading, temperature):
    attr = torch.randn(*leading, 20)
    active = torch.rand(*leading, 20) < 0.6
    mask = circuit_mask(attr, active, 0.3, temperature)
    rows = [circuit_mask(a, b, 0.3, temperature) for a, b in zip(attr.view(-1, 20), active.view(-1, 20), strict=True)]
    torch.testing.assert_close(mask, torch.stack(rows).view(mask.shape))


def test_threshold_and_scale_are_detached():
    attr = torch.tensor([3.0, -2.0, 1.0, 0.5], requires_grad=True)
    mask = circuit_mask(attr, torch.ones(4, dtype=torch.bool), 0.5, 10.0)
    mask[0].backward()
    assert attr.grad is not None
    assert attr.grad[0] > 0
    assert (attr.grad[1:] == 0).all()


def test_the_worked_example():
    active = torch.tensor([True, True, True, False])
    mask = circuit_mask(torch.tensor([4.0, -8.0, 1.0, 0.0]), active, 0.34, HARD)
    assert mask.tolist() == [0, 1, 0, 0]
