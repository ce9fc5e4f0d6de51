"""A `CircuitState` keeps factors and behaves as the tuple (logits, sparse_vector, W_eff, b_eff)."""

import dataclasses

import pytest
import torch

from lexical_sae.mechanistic.attribution import attribute, attribute_centered, identity_error
from lexical_sae.mechanistic.exact.directions import class_centered, towards
from lexical_sae.models.circuit_state import CircuitState, compute_active_slice_weff
from lexical_sae.models.heads import ReluHead

SIZE, CLASSES = 12, 3


def decided(*leading) -> CircuitState:
    torch.manual_seed(3)
    head = ReluHead.Config(hidden_units=7).build(SIZE, CLASSES).double()
    return head(torch.rand(*leading, SIZE, dtype=torch.float64) * (torch.rand(*leading, SIZE) > 0.4))


def as_tuple(state):
    return (state.logits, state.sparse_vector, state.W_eff, state.b_eff)


def test_it_is_indexed_sliced_counted_and_unpacked_as_a_named_tuple():
    state = decided(4)
    expected = as_tuple(state)
    assert len(state) == 4
    assert state._fields == ("logits", "sparse_vector", "W_eff", "b_eff")
    logits, sparse_vector, W_eff, b_eff = state
    for i, found in enumerate((logits, sparse_vector, W_eff, b_eff)):
        for same in (found, state[i], state[i - 4], tuple(state)[i]):
            assert torch.equal(same, expected[i])
    assert [part.shape for part in state[1:3]] == [(4, SIZE), (4, CLASSES, SIZE)]
    assert [part.shape for part in state[::-1]] == [part.shape for part in expected[::-1]]
    with pytest.raises(IndexError):
        state[4]


@pytest.mark.parametrize("leading", [(), (4,), (2, 3)])
def test_made_from_the_four_parts_it_answers_as_the_factored_one(leading):
    factored = decided(*leading)
    dense = CircuitState(*factored)
    for ours, theirs in zip(dense, factored, strict=True):
        assert torch.equal(ours, theirs)
    classes = torch.randint(0, CLASSES, leading)
    for ask in (attribute, attribute_centered):
        torch.testing.assert_close(ask(dense, classes), ask(factored, classes))
    words = torch.tensor([5, 2])
    torch.testing.assert_close(dense.effective_columns(words), factored.effective_columns(words))
    assert (identity_error(dense) < 1e-10).all()
    asked = towards(dense, class_centered(dense.logits, classes))
    torch.testing.assert_close(asked.sparse_vector * asked.W_eff[..., 0, :], attribute_centered(factored, classes))


def test_gradients_reach_a_dense_w_eff():
    state = decided(4)
    W_eff = state.W_eff.detach().requires_grad_()
    attribute(
        CircuitState(state.logits, state.sparse_vector, W_eff, state.b_eff), torch.tensor([0, 2, 1, 1])
    ).sum().backward()
    assert W_eff.grad is not None
    torch.testing.assert_close(W_eff.grad[0, 0], state.sparse_vector[0].detach())
    assert not W_eff.grad[0, 1:].any()


def test_the_dense_matrix_is_made_only_when_it_is_asked_for():
    made = []

    class Watched(CircuitState):
        @property
        def W_eff(self):
            made.append(True)
            return super().W_eff

    state = decided(4)
    parts = {field.name: getattr(state, field.name) for field in dataclasses.fields(state)}
    watched = Watched(**parts)
    assert len(watched[:2]) == len((watched[0], watched[-1])) == 2
    attribute(watched, watched[0].argmax(-1))
    identity_error(watched)
    compute_active_slice_weff(watched.sparse_vector, watched)
    assert made == []
    assert len(list(watched)) == 4
    assert made == [True]


def test_a_state_without_weights_or_with_two_kinds_of_them_is_refused():
    state = decided(4)
    factors = {"readout": state.readout, "word_vectors": state.word_vectors}
    for wrong in ({}, {"readout": state.readout}, {"W_eff": state.W_eff, **factors}):
        with pytest.raises(TypeError, match="either W_eff or both readout and word_vectors"):
            CircuitState(state.logits, state.sparse_vector, b_eff=state.b_eff, **wrong)
    with pytest.raises(TypeError, match="takes b_eff"):
        CircuitState(state.logits, state.sparse_vector, state.W_eff)
