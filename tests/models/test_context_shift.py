import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.models.layers.context_shift import ContextShift

STRENGTH, LEAST, ELIGIBLE = 4.0, 0.5, 0.25


def shift_of(sizes, weight=1.0):
    """A shift whose state is the argument of the tanh."""
    part = ContextShift.Config(activation=STRENGTH, least=LEAST, eligible_from=ELIGIBLE).build(1, len(sizes))
    part.size.copy_(torch.as_tensor(sizes))
    with torch.no_grad():
        part.layer.weight.fill_(weight)
    return part


def state_for(change):
    """The state that asks for this change of a default activation of 1."""
    return torch.atanh(torch.as_tensor(change, dtype=torch.float32) / STRENGTH)[:, None]


def test_a_new_model_shifts_nothing_whatever_the_state():
    part = ContextShift.Config().build(6, 3)
    part.size.fill_(100.0)
    shifts = part(1e3 * torch.randn(50, 6), torch.randint(3, (50,)))
    assert (shifts.factor == 1).all()
    assert not shifts.is_shifted.any()


def test_what_moves_a_contribution_less_than_the_least_is_exactly_nothing_and_the_rest_is_applied():
    # Changes of a word whose row is 0.5 logits: 0.9 moves it by 0.45, 1.1 by 0.55.
    changes = [0.9, 1.1, -0.9, -1.1, 3.9, -3.9, 0.0]
    shifts = shift_of([0.5])(state_for(changes), torch.zeros(7, dtype=torch.long))
    assert shifts.is_shifted.tolist() == [False, True, False, True, True, True, False]
    assert (shifts.factor[~shifts.is_shifted] == 1).all()
    torch.testing.assert_close(shifts.factor[shifts.is_shifted], torch.tensor([2.1, -0.1, 4.9, -2.9]))


def test_the_same_change_is_material_for_a_word_with_a_large_row_and_not_for_one_with_a_small_one():
    shifts = shift_of([0.3, 3.0])(state_for([1.0, 1.0]), torch.tensor([0, 1]))
    assert shifts.factor.tolist() == [1.0, pytest.approx(2.0)]


@given(st.floats(-1e4, 1e4))
def test_words_with_small_rows_never_shift_whatever_the_state(state):
    part = shift_of([0.0, 0.1, 0.249])
    shifts = part(torch.full((3, 1), state), torch.arange(3))
    assert shifts.factor.tolist() == [1.0, 1.0, 1.0]
    assert not shifts.is_shifted.any()
    assert shifts.smooth_count.tolist() == [0.0, 0.0, 0.0]
    shifts.factor.sum().backward()
    assert part.layer.weight.grad.tolist() == [[0.0]]


def test_a_word_without_a_row_never_shifts_even_where_every_word_may():
    part = ContextShift.Config(eligible_from=0.0).build(1, 1)
    with torch.no_grad():
        part.layer.weight.fill_(1.0)
    shifts = part(torch.tensor([[9.0]]), torch.tensor([0]))
    assert shifts.factor.tolist() == [1.0]
    assert shifts.smooth_count.tolist() == [0.0]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8), st.floats(0, 50))
def test_a_factor_is_one_or_a_material_change_within_its_bounds(states, size):
    shifts = shift_of([size])(torch.tensor(states)[:, None], torch.zeros(len(states), dtype=torch.long))
    assert (shifts.factor >= 1 - STRENGTH).all()
    assert (shifts.factor <= 1 + STRENGTH).all()
    moved = (shifts.factor - 1).abs() * size
    assert ((shifts.factor == 1) | (moved >= LEAST - 1e-4)).all()
    assert torch.equal(shifts.is_shifted, shifts.factor != 1)


def test_gradients_pass_the_dead_zone_as_if_it_were_not_there():
    part, words = shift_of([0.5]), torch.zeros(2, dtype=torch.long)
    states = state_for([0.3, 2.0]).requires_grad_()
    shifts = part(states, words)
    assert shifts.is_shifted.tolist() == [False, True]
    (grad,) = torch.autograd.grad(shifts.factor.sum(), states)
    expected = STRENGTH * (1 - torch.tanh(states.detach()) ** 2)
    torch.testing.assert_close(grad, expected)
    assert (grad > 0.5).all()


def test_the_smooth_count_rises_with_the_movement_and_is_a_half_at_the_least_that_counts():
    changes = torch.linspace(0.05, 3.85, 39)
    shifts = shift_of([0.5])(state_for(changes), torch.zeros(39, dtype=torch.long))
    assert (shifts.smooth_count.diff() > 0).all()
    at_least = shift_of([0.5])(state_for([1.0, -1.0]), torch.zeros(2, dtype=torch.long))
    torch.testing.assert_close(at_least.smooth_count, torch.tensor([0.5, 0.5]), atol=1e-4, rtol=0)
    assert torch.equal(shifts.smooth_count > 0.5, shifts.is_shifted)
    states = state_for([0.3]).requires_grad_()
    (grad,) = torch.autograd.grad(shift_of([0.5])(states, torch.zeros(1, dtype=torch.long)).smooth_count.sum(), states)
    assert grad.item() > 0


def test_states_in_half_precision_are_read_in_the_precision_of_the_weights():
    shifts = shift_of([1.0])(state_for([2.0]).bfloat16(), torch.zeros(1, dtype=torch.long))
    assert shifts.factor.dtype == torch.float32
