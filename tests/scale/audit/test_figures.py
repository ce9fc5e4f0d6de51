import numpy as np
import pytest
from scipy import stats

from lexical_sae.scale.audit.figures import chance_of_split, mean_limits, wilson, word_figures


@pytest.mark.parametrize("total", [100, 2000, 1_000_000])
def test_the_p_value_is_that_of_fishers_exact_test_or_a_little_more(total):
    generator = np.random.default_rng(total)
    marked, drawn = generator.integers(1, total // 2, 300), generator.integers(1, total, 300)
    usual = stats.hypergeom.rvs(total, marked, drawn, random_state=1)
    reach = np.sqrt(marked * drawn / total * (1 - drawn / total)).astype(int)
    inside = usual + generator.integers(-6, 7, 300) * reach
    inside = np.clip(inside, np.maximum(0, drawn + marked - total), np.minimum(marked, drawn))
    tails = stats.hypergeom.cdf(inside, total, marked, drawn), stats.hypergeom.sf(inside - 1, total, marked, drawn)
    exact = np.minimum(1, 2 * np.minimum(*tails))
    found = chance_of_split(inside, marked, drawn, np.full(300, total))
    assert (found >= exact * (1 - 1e-6)).all()
    counts = (exact < 0.01) & (exact > 1e-200)
    assert counts.sum() > 50
    assert (found[counts] <= 1.2 * exact[counts]).all()


def test_all_of_one_kind_are_no_change():
    counts = (np.array(each) for each in ([0, 5, 10], [0, 10, 10], [5, 5, 10], [10, 10, 10]))
    assert chance_of_split(*counts).tolist() == [1.0, 1.0, 1.0]


def test_limits_are_those_of_wilson_and_student():
    low, high = wilson(np.array([5, 0, 10, 0]), np.array([10, 10, 10, 0]))
    for i, (count, total) in enumerate([(5, 10), (0, 10), (10, 10)]):
        exact = stats.binomtest(count, total).proportion_ci(0.95, method="wilson")
        assert (low[i], high[i]) == pytest.approx((exact.low, exact.high), abs=1e-12)
    assert (low[3], high[3]) == (0, 1)
    values = np.array([0.3, -1.0, 2.0, 0.5])
    made = mean_limits(np.array([4]), values[None].sum(1), (values**2)[None].sum(1))
    exact = stats.ttest_1samp(values, 0).confidence_interval()
    assert [float(one[0]) for one in made] == pytest.approx([values.mean(), exact.low, exact.high])


def test_per_text_counts_texts_that_do_not_list_the_word_as_zero():
    made = word_figures(*(np.array([n]) for n in (2, 10, 3.0, 5.0)))
    assert (made["share"][0], made["mean"][0], made["per_text"][0]) == pytest.approx((0.2, 1.5, 0.3))
    with_zeros = stats.ttest_1samp([1.0, 2.0, *[0.0] * 8], 0).confidence_interval()
    assert (made["per_text_low"][0], made["per_text_high"][0]) == pytest.approx((with_zeros.low, with_zeros.high))
