from itertools import combinations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.mechanistic.minimal_sets import (
    Decision,
    smallest_flip,
    smallest_sufficient_set,
)
from lexical_sae.mechanistic.minimal_sets.smallest import Partial, Reach
from tests.mechanistic.decisions import (
    decision_that_needs,
    decisions,
    flips,
    label_when_alone,
    label_when_removed,
    random_decision,
    smallest_size,
    tied_decisions,
)

ANY = decisions() | tied_decisions()


def others(decision):
    return set(range(decision.num_classes)) - {decision.winner}


def assert_is_the_smallest(result, size):
    if size is None:
        assert result.words is None
        assert result.is_impossible
    else:
        assert result.words is not None
        assert len(result.words) == size
        assert result.is_minimal
        assert not result.is_impossible


@given(decision=ANY)
def test_the_smallest_flip_is_that_of_exhaustive_search(decision):
    result = smallest_flip(decision)
    assert_is_the_smallest(result, smallest_size(decision, others(decision)))
    if result.words is not None:
        assert result.label == label_when_removed(decision, result.words) != decision.winner


@given(decision=ANY)
def test_the_smallest_flip_to_every_class_is_that_of_exhaustive_search(decision):
    for label in others(decision):
        result = smallest_flip(decision, to=label)
        assert_is_the_smallest(result, smallest_size(decision, [label]))
        if result.words is not None:
            assert result.label == label == label_when_removed(decision, result.words)


@given(decision=ANY)
def test_the_smallest_sufficient_set_is_that_of_exhaustive_search(decision):
    result = smallest_sufficient_set(decision)
    assert_is_the_smallest(result, smallest_size(decision, [decision.winner], kept_alone=True))
    assert result.words is not None
    assert label_when_alone(decision, result.words) == decision.winner


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_a_flip_is_found_though_no_smaller_removal_moves_any_logit(size):
    result = smallest_flip(decision_that_needs(size, others=10))
    assert result.words == tuple(range(size))
    assert result.is_minimal
    assert result.label == 1


@pytest.mark.parametrize("seed", range(6))
def test_flips_among_fifteen_words_are_minimal(seed):
    decision = random_decision(seed, words=15, hidden=12, classes=3)
    assert_is_the_smallest(smallest_flip(decision), smallest_size(decision, others(decision)))


def test_flips_of_random_decisions_need_from_one_to_five_words():
    found = [smallest_flip(random_decision(seed, words=12, hidden=12)).words for seed in range(40)]
    assert {len(words) for words in found if words is not None} >= {1, 2, 3, 4, 5}


def test_a_decision_that_nothing_flips_is_reported_with_proof():
    decision = random_decision(0, words=40, hidden=32)
    decision.class_bias[1] += 1000
    for result in (smallest_flip(decision), smallest_flip(decision, to=0)):
        assert result.words is None
        assert result.label is None
        assert result.is_impossible
        assert not result.is_minimal
        assert result.nodes == 1


def test_of_equal_logits_the_lowest_class_wins():
    # Without the word all three logits are zero; with it class 1 leads.
    decision = Decision(torch.ones(1, 1), torch.zeros(1), torch.tensor([[0.0], [1.0], [0.0]]), torch.zeros(3))
    assert decision.winner == 1
    assert smallest_flip(decision).label == 0
    assert smallest_flip(decision, to=2).is_impossible
    tied = Decision(torch.zeros(1, 1), torch.zeros(1), torch.zeros(2, 1), torch.zeros(2))
    assert tied.winner == 0
    assert smallest_flip(tied).is_impossible


@given(decision=decisions(), budget=st.sampled_from([0, 1, 3, 10, 40]))
def test_bounds_on_the_size_hold_when_the_budget_ends_early(decision, budget):
    true = smallest_size(decision, others(decision))
    result = smallest_flip(decision, max_nodes=budget)
    assert result.at_least <= (decision.num_words + 1 if true is None else true)
    if result.words is not None:
        assert true is not None
        assert true <= len(result.words)
        assert label_when_removed(decision, result.words) != decision.winner


def test_greed_gives_back_the_words_that_turn_out_superfluous():
    # Useless words stand first, and nothing tells them from the others until all five of those are gone.
    decision = decision_that_needs(5, others=10)
    decision.word_terms.copy_(decision.word_terms.flip(0))
    result = smallest_flip(decision, max_nodes=0)
    assert result.words == tuple(range(10, 15))
    assert not result.is_minimal


def test_a_search_out_of_budget_says_so():
    decision = decision_that_needs(6, others=20)
    cut = smallest_flip(decision, max_nodes=3)
    assert cut.nodes <= 3
    assert cut.at_least < 6 <= len(cut.words or range(26))
    assert not cut.is_minimal
    assert smallest_flip(decision, seconds=0.0).at_least == 0
    assert smallest_flip(decision, max_nodes=10**6).is_minimal


@pytest.mark.parametrize("missing", [1, 2, 3])
def test_no_words_that_may_join_move_a_unit_further_than_the_reach(missing):
    moves = random_decision(0, words=6).word_terms
    free = torch.tensor([[True] * 6, [True, False, True, True, False, True]])
    partial = Partial(~free, free, torch.zeros(2, dtype=torch.long), missing)
    fall, rise = Reach.of(moves, 4).of_partial(partial)
    for row in range(2):
        joins = combinations(free[row].nonzero().flatten().tolist(), missing)
        sums = torch.stack([moves[list(words)].sum(0) for words in joins])
        assert (sums >= -fall[row] - 1e-12).all()
        assert (sums <= rise[row] + 1e-12).all()


def test_a_typical_search_bounds_few_of_the_sets_and_is_repeatable():
    decision = random_decision(17, words=50, hidden=256, scale=0.1)
    result = smallest_flip(decision)
    assert result.is_minimal
    assert len(result.words or ()) == 4
    assert result.nodes < 1000  # of 230,300 sets of four words
    assert smallest_flip(decision) == result


def test_words_that_suffice_alone_need_not_suffice_beside_others():
    # The first word speaks for class 1, the second against it and the third against the second.
    terms = torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
    decision = Decision(terms, torch.zeros(2), torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([0.5, 0.0]))
    assert decision.winner == 1
    assert smallest_sufficient_set(decision).words == (0,)
    assert flips(decision, {2})


def test_a_text_without_active_words_has_reasons_too():
    decision = random_decision(0, words=0)
    assert smallest_flip(decision).is_impossible
    assert smallest_sufficient_set(decision).words == ()


@pytest.mark.parametrize("label", [-1, 0, 3])
def test_a_class_that_cannot_be_flipped_to_is_refused(label):
    decision = random_decision(0, words=3, classes=3)
    decision.class_bias[0] += 100
    with pytest.raises(ValueError, match=rf"to={label} is not a class .* choose one of \[1, 2\]"):
        smallest_flip(decision, to=label)
