import pytest
import torch
from torch import nn

from lexical_sae.mechanistic.sae import LargestK, SparseAutoencoder


def test_the_largest_k_keeps_no_more_than_k_and_nothing_negative():
    logits = torch.tensor([[3.0, 5.0, -9.0], [-1.0, 2.0, -3.0]])
    assert LargestK(1)(logits).tolist() == [[0, 5, 0], [0, 2, 0]]
    assert LargestK(2)(logits).tolist() == [[3, 5, 0], [0, 2, 0]]


@pytest.mark.parametrize("activation", [nn.ReLU(), LargestK(2)], ids=["relu", "largest k"])
def test_a_state_is_its_features_directions_by_their_strength(activation):
    sae = SparseAutoencoder(4, 7, activation).double()
    states = 5 + 3 * torch.randn(10, 4, dtype=torch.float64)
    sae.centre_on(states)
    code = sae.encode(states)
    for state, row in zip(sae(states), code, strict=True):
        by_hand = sum(activation * direction for activation, direction in zip(row, sae.dictionary, strict=True))
        torch.testing.assert_close(state, by_hand * sae.scale + sae.centre)


def test_centered_states_have_length_one_on_average_and_equal_states_no_scale_of_zero():
    sae = SparseAutoencoder(4, 7, nn.ReLU())
    states = 5 + 3 * torch.randn(50, 4)
    sae.centre_on(states)
    scaled = (states - sae.centre) / sae.scale
    assert float(scaled.square().sum(-1).mean()) == pytest.approx(1, rel=1e-5)
    sae.centre_on(torch.ones(3, 4))
    assert bool(sae(torch.ones(3, 4)).isfinite().all())


def test_normalising_keeps_the_directions():
    sae = SparseAutoencoder(4, 7, nn.ReLU())
    before = sae.dictionary.detach().clone()
    with torch.no_grad():
        sae.dictionary.mul_(3)
    sae.normalise()
    torch.testing.assert_close(sae.dictionary.detach(), before)
