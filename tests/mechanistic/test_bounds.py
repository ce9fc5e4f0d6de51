from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from lexical_sae.mechanistic.minimal_sets import Decision, certify_removals, removals
from lexical_sae.mechanistic.minimal_sets.question import Margins
from lexical_sae.mechanistic.minimal_sets.relaxation import bound_margins
from tests.mechanistic.decisions import (
    all_subsets,
    decision_that_needs,
    decisions,
    flips,
    label_when_removed,
    margins_by_subset,
    random_decision,
    tied_decisions,
)

METHODS = {"exhaustive": 99, "relaxation": -1}


def certify(decision, words, method="relaxation", max_nodes=4096):
    """A certificate by the given method, whatever the number of words."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(removals, "EXHAUSTIVE_WORDS", METHODS[method])
        certificate = certify_removals(decision, words, max_nodes)
    assert certificate.method == method
    return certificate


def assert_contains_every_subset(certificate, decision, words):
    margins = margins_by_subset(decision, words)
    assert (margins >= certificate.lower).all()
    assert (margins <= certificate.upper).all()


@pytest.mark.parametrize("method", METHODS)
@given(decision=decisions(), data=st.data())
def test_bounds_contain_the_margins_of_every_subset(method, decision, data):
    words = data.draw(st.sets(st.integers(0, decision.num_words - 1))) if decision.num_words else []
    budget = data.draw(st.sampled_from([1, 8, 4096]))
    assert_contains_every_subset(certify(decision, words, method, budget), decision, words)


@pytest.mark.slow
def test_bounds_contain_the_margins_of_every_subset_in_ten_thousand_trials():
    for trial in range(10_000):
        shape = trial % 7, 1 + trial % 11, 2 + trial % 3
        decision = random_decision(trial, *shape, scale=(0.1, 1.0, 10.0)[trial % 3])
        words = list(range(decision.num_words))[trial % 2 :]
        certificate = certify(decision, words, max_nodes=(1, 4, 4096)[trial % 3])
        assert_contains_every_subset(certificate, decision, words)
        assert not (certificate.is_proved and flips(decision, words))


@pytest.mark.parametrize("method", METHODS)
@given(decision=decisions() | tied_decisions(), budget=st.sampled_from([1, 8, 4096]))
def test_a_proof_is_never_refuted_and_a_counterexample_always_flips(method, decision, budget):
    words = range(decision.num_words)
    certificate = certify(decision, words, method, budget)
    if certificate.is_proved:
        assert not flips(decision, words)
    if certificate.counterexample is not None:
        assert label_when_removed(decision, certificate.counterexample) != decision.winner


@given(decision=decisions())
def test_with_enough_nodes_every_case_without_ties_is_settled(decision):
    certificate = certify(decision, range(decision.num_words))
    is_refuted = certificate.counterexample is not None
    assert certificate.is_proved != is_refuted
    assert is_refuted == flips(decision, range(decision.num_words))


@given(decision=decisions())
def test_exhaustive_bounds_are_attained(decision):
    certificate = certify(decision, range(decision.num_words), "exhaustive")
    margins = torch.from_numpy(margins_by_subset(decision, range(decision.num_words)))
    torch.testing.assert_close(torch.tensor(certificate.lower), margins.amin(0).float(), atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(torch.tensor(certificate.upper), margins.amax(0).float(), atol=1e-6, rtol=1e-6)
    assert certificate.nodes == 2**decision.num_words


@pytest.mark.parametrize("method", METHODS)
def test_rounding_is_counted(method):
    # One class gets 1e16 + 1 - 1e16, which is 1, but 0 or 2 in fp64; the other 1. No word is removed.
    terms = torch.tensor([[1e16], [1.0], [-1e16]])
    decision = Decision(terms, torch.zeros(1), torch.tensor([[1.0], [0.0]]), torch.tensor([0.0, 1.0]))
    exact = Fraction(10**16) + 1 - Fraction(10**16) - 1
    other = 1 - decision.winner
    certificate = certify(decision, [], method)
    assert certificate.lower[other] < exact < certificate.upper[other]
    assert not certificate.is_proved


@given(seed=st.integers(0, 10_000))
def test_bounds_contain_the_margins_of_exact_arithmetic(seed):
    decision = random_decision(seed, words=4, hidden=3)
    decision.word_terms[0] *= 1e12
    decision.word_terms[1] *= -1e12
    exact = [_exact_margin(decision, ~subset) for subset in all_subsets(decision, range(4))]
    for method in METHODS:
        certificate = certify(decision, range(4), method)
        other = 1 - decision.winner
        assert certificate.lower[other] <= min(exact)
        assert max(exact) <= certificate.upper[other]


SIZES = [0.0, 5e-324, 1e-320, 1e-300, 1e-160, 1.0, 1e16, 1e100, 1e150]


@given(seed=st.integers(0, 10_000), sizes=st.tuples(*[st.sampled_from(SIZES)] * 4), words=st.integers(0, 3))
@example(seed=357, sizes=(1e150, 1e16, 1e-320, 0.0), words=3)
def test_bounds_hold_in_exact_arithmetic_for_numbers_of_any_size(seed, sizes, words):
    plain = random_decision(seed, words, hidden=2)
    parts = plain.word_terms, plain.hidden_bias, plain.readout, plain.class_bias
    decision = Decision(*(size * part for size, part in zip(sizes, parts, strict=True)))
    exact = [_exact_margin(decision, ~subset) for subset in all_subsets(decision, range(words))]
    other = 1 - decision.winner
    for method in METHODS:
        certificate = certify(decision, range(words), method)
        assert certificate.lower[other] <= min(exact)
        assert max(exact) <= certificate.upper[other]


@pytest.mark.parametrize(("terms", "weights"), [(1e307, 1.0), (1e307, 0.0), (1e200, 1e200)])
def test_numbers_whose_sums_overflow_are_refused(terms, weights):
    ones = torch.ones(40, 3, dtype=torch.float64)
    with pytest.raises(ValueError, match="overflow, and nothing can be proved"):
        Decision(terms * ones, ones[0], weights * ones[:2], ones[:2, 0])


def _exact_margin(decision, kept):
    """The margin in rational numbers."""
    rational = np.vectorize(Fraction, otypes=[object])
    parts = decision.word_terms, decision.hidden_bias, decision.readout, decision.class_bias
    terms, hidden_bias, readout, class_bias = (rational(part.numpy()) for part in parts)
    logits = readout @ np.maximum(hidden_bias + terms[kept].sum(0), 0) + class_bias
    return logits[decision.winner] - logits[1 - decision.winner]


def test_the_worked_example_of_the_linear_bound():
    moves = torch.tensor([[-1.0], [-1.0]]).double()
    margins = Margins(*(torch.tensor(part).double() for part in ([[-1.0]], [0.0], [0.0])))
    ones = torch.ones(1, 1).double()
    bound = bound_margins(margins, ones, 2 * ones, 0 * ones, moves)
    assert bound.constant.tolist() == [-1.0]
    assert bound.effects.tolist() == [[0.5, 0.5]]


def test_units_that_no_removal_can_switch_are_bounded_exactly():
    decision = random_decision(0, words=8)
    decision.hidden_bias[:3] += 100
    decision.hidden_bias[3:] -= 100
    certificate = certify(decision, range(8), max_nodes=1)
    margins = torch.from_numpy(margins_by_subset(decision, range(8)))
    torch.testing.assert_close(torch.tensor(certificate.lower).double(), margins.amin(0))
    torch.testing.assert_close(torch.tensor(certificate.upper).double(), margins.amax(0))


def test_splitting_proves_what_one_relaxation_leaves_open():
    # Only together do the first five words change the decision; the list leaves the fifth out.
    decision = decision_that_needs(5, others=20)
    words = [0, 1, 2, 3, *range(5, 25)]
    assert certify_removals(decision, words).is_proved
    first, second = (certify(random_decision(3, words=10), range(10), max_nodes=n) for n in (1, 4096))
    assert min(first.lower) <= min(second.lower)
    shaky = next(d for d in map(_firm, range(100)) if not certify(d, range(13), max_nodes=1).is_proved)
    certificate = certify_removals(shaky, range(13))
    assert certificate.method == "relaxation"
    assert certificate.is_proved
    assert 1 < certificate.nodes < 2**13


def _firm(seed):
    """A decision with a bias just large enough that no removal changes it."""
    decision = random_decision(seed, words=13, hidden=8)
    lowest = min(certify(decision, range(13), "exhaustive").lower)
    decision.class_bias[decision.winner] += 0.3 - lowest
    return decision


def test_no_words_to_remove_leave_the_margin_as_it_is():
    decision = random_decision(1, words=5, classes=3)
    certificate = certify_removals(decision, [])
    assert certificate.is_proved
    assert certificate.lower == pytest.approx(margins_by_subset(decision, [])[0])


def test_a_word_given_twice_counts_once():
    decision = random_decision(1, words=5)
    assert certify_removals(decision, [3, 1, 3]) == certify_removals(decision, [1, 3])


@pytest.mark.parametrize("word", [-1, 5])
def test_a_word_that_is_not_active_is_refused(word):
    with pytest.raises(ValueError, match=f"word {word} is not among the 5 active words"):
        certify_removals(random_decision(1, words=5), [0, word])


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_head_that_is_not_finite_is_refused(value):
    with pytest.raises(ValueError, match=f"hidden_bias holds {value}"):
        Decision(torch.ones(2, 1), torch.tensor([value]), torch.ones(2, 1), torch.ones(2))


def test_one_class_is_no_decision():
    with pytest.raises(ValueError, match="class_bias has 1 class"):
        Decision(torch.ones(2, 1), torch.ones(1), torch.ones(1, 1), torch.ones(1))


def test_a_single_precision_head_is_computed_in_double():
    decision = Decision(*(torch.randn(shape) for shape in [(3, 4), (4,), (2, 4), (2,)]))
    assert decision.logits(torch.ones(3, dtype=torch.bool)).dtype == torch.float64
