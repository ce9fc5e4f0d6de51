import numpy as np
import pytest
from scipy.stats import binomtest

from lexical_sae.evaluation.intervals import ends_of_equal_values, mean_and_interval, paired_bootstrap, share_interval


def test_students_interval_of_three_values():
    found = mean_and_interval([1, 2, 3])
    assert (found.mean, found.count) == (2, 3)
    assert (found.low, found.high) == (pytest.approx(-0.484, abs=1e-3), pytest.approx(4.484, abs=1e-3))


def test_one_value_has_no_interval_and_none_no_mean():
    assert mean_and_interval([0.5]).low is None
    with pytest.raises(ValueError, match="no value"):
        mean_and_interval([])


def test_the_interval_covers_the_truth_as_often_as_it_says():
    generator = np.random.default_rng(0)
    samples = generator.normal(size=(400, 5))
    found = [mean_and_interval(list(sample)) for sample in samples]
    assert np.mean([f.low <= 0 <= f.high for f in found]) == pytest.approx(0.95, abs=0.03)


def test_paired_bootstrap_sees_a_difference_that_unpaired_noise_would_hide():
    generator = np.random.default_rng(1)
    theirs = generator.random(400) < 0.7
    ours = theirs.copy()
    ours[np.flatnonzero(~theirs)[:12]] = True
    found = paired_bootstrap(list(map(bool, ours)), list(map(bool, theirs)))
    assert found.mean == pytest.approx(0.03)
    assert found.low > 0
    same = paired_bootstrap(list(map(bool, ours)), list(map(bool, ours)))
    assert (same.mean, same.low, same.high) == pytest.approx((0, -0.00918, 0.00918), abs=1e-5)


def test_answers_to_different_texts_are_not_compared():
    with pytest.raises(ValueError, match="same texts"):
        paired_bootstrap([True], [True, False])


def test_the_interval_of_a_share_covers_the_truth_about_as_often_as_it_says():
    generator = np.random.default_rng(2)
    covered = []
    for _ in range(200):
        wholes = generator.exponential(size=200)
        # Heavy texts fail more often, so that the share of the weight is not that of the texts: 0.72 against 0.83.
        parts = wholes * (generator.random(200) < np.where(wholes > np.log(2), 2 / 3, 1.0))
        low, high = share_interval(list(parts), list(wholes), rounds=200)
        truth = 1 - (1 / 3) * (0.5 * (1 + np.log(2)))
        covered.append(low <= truth <= high)
    assert np.mean(covered) == pytest.approx(0.94, abs=0.03)


def test_a_share_over_fewer_than_two_texts_with_weight_has_no_interval():
    assert share_interval([1.0, 0.0], [2.0, 0.0]) == (None, None)
    assert share_interval([], []) == (None, None)
    assert share_interval([1.0, 0.0], [1.0, 1.0]) == (0.0, 1.0)


@pytest.mark.parametrize("count", [2, 10, 500])
def test_ends_of_equal_shares_are_those_of_clopper_and_pearson(count):
    for right in (0, count):
        exact = binomtest(right, count).proportion_ci(0.95, "exact")
        assert ends_of_equal_values(right / count, count) == pytest.approx((exact.low, exact.high))


def test_ends_of_equal_values_keep_within_what_there_can_be():
    assert ends_of_equal_values(0.0, 10, least=-1.0) == pytest.approx((-0.3085, 0.3085), abs=1e-4)
    assert ends_of_equal_values(-1.0, 10, least=-1.0) == pytest.approx((-1.0, -1.0 + 2 * 0.3085), abs=1e-4)
    assert ends_of_equal_values(0.5, 10) == pytest.approx((0.5 - 0.1543, 0.5 + 0.1543), abs=1e-4)


def test_a_share_that_is_the_same_in_every_text_still_has_an_interval():
    assert share_interval([1.0, 2.0, 0.1] * 4, [1.0, 2.0, 0.1] * 4) == pytest.approx((0.7354, 1.0), abs=1e-4)
    assert share_interval([0.0] * 12, [1.0, 2.0, 0.1] * 4) == pytest.approx((0.0, 0.2646), abs=1e-4)


def test_one_text_has_a_difference_without_an_interval():
    found = paired_bootstrap([True], [False])
    assert (found.mean, found.low, found.high) == (1, None, None)
