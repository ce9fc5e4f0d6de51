import math

import numpy as np
import pytest
import torch

from lexical_sae.evaluation.bootstrap import BootstrapMeans
from lexical_sae.evaluation.intervals import mean_and_interval


def means_of(*figures, batch=7, order=None, seed=0):
    means, count = BootstrapMeans(seed=seed), len(figures[0])
    rows = list(range(count)) if order is None else order
    for start in range(0, count, batch):
        some = rows[start : start + batch]
        means.update(some, {name: values[some] for name, values in zip("abc", figures, strict=False)})
    return means


def normal(count=400, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(2.0, 3.0, count))


def test_intervals_of_many_numbers_are_those_of_theory():
    values = normal()
    found, theory = means_of(values)["a"], mean_and_interval(values.tolist())
    assert found.mean == pytest.approx(theory.mean)
    assert found.high - found.low == pytest.approx(theory.high - theory.low, rel=0.12)
    assert (found.low + found.high) / 2 == pytest.approx(theory.mean, abs=0.05)
    assert found.count == 400


def test_batches_and_order_do_not_matter():
    values = normal(50)
    shuffled = np.random.default_rng(1).permutation(50).tolist()
    first, second = means_of(values)["a"], means_of(values, batch=50, order=shuffled)["a"]
    assert (first.low, first.high) == pytest.approx((second.low, second.high), abs=1e-12)
    assert means_of(values, seed=1)["a"].low != first.low


def test_differences_are_paired_by_text():
    values = normal(100)
    difference = means_of(values, values + 0.5).difference("b", "a")
    assert (difference.mean, difference.low, difference.high) == pytest.approx((0.5, 0.5, 0.5))


def test_a_ratio_is_one_of_sums():
    means = means_of(torch.tensor([1.0, 9.0]), torch.tensor([1.0, 3.0]))
    assert means.ratio("a", "b").mean == pytest.approx(2.5)
    assert math.isnan(means_of(torch.ones(2), torch.zeros(2)).ratio("a", "b").mean)


def test_texts_without_a_value_do_not_count():
    found = means_of(torch.tensor([1.0, torch.nan, 3.0, torch.nan]))["a"]
    assert (found.mean, found.count) == (2.0, 2)


def test_little_is_said_of_little():
    one = means_of(torch.tensor([4.0]))["a"]
    assert (one.mean, one.low, one.high, one.count) == (4.0, None, None, 1)
    none = means_of(torch.tensor([torch.nan, torch.nan]))["a"]
    assert math.isnan(none.mean)
    assert (none.low, none.count) == (None, 0)
    assert BootstrapMeans()["unknown"].count == 0


def test_shares_that_are_all_equal_have_exact_ends():
    right = means_of(torch.ones(10), torch.zeros(10), torch.full((10,), 0.5))
    # (1 - r)^10 = 0.025.
    assert (right.share("a").low, right.share("a").high) == (pytest.approx(0.6915, abs=1e-4), 1.0)
    assert (right.share("b").low, right.share("b").high) == (0.0, pytest.approx(0.3085, abs=1e-4))
    assert (right.share("c").low, right.share("c").high) == pytest.approx((0.3457, 0.6543), abs=1e-4)
    assert right["a"].low == right["a"].high == 1.0, "a figure that is no share may well never vary"


def test_exact_ends_hold_as_often_as_they_say():
    """The truth is where ten right answers in a row are as unlikely as 2.5 %."""
    low = means_of(torch.ones(10)).share("a").low
    draws = np.random.default_rng(0).random((20_000, 10)) < low
    assert draws.all(1).mean() == pytest.approx(0.025, abs=0.004)


def test_shares_that_vary_are_resampled_like_any_figure():
    values = (normal() > 0).double()
    assert means_of(values).share("a") == means_of(values)["a"]


def test_only_texts_with_a_value_count_towards_exact_ends():
    found = means_of(torch.tensor([1.0, torch.nan] * 10)).share("a")
    assert found == means_of(torch.ones(10)).share("a")


def test_differences_and_ratios_of_equal_shares_have_the_ends_of_both():
    means = means_of(torch.ones(10), torch.zeros(10), torch.ones(10))
    unmet = 1 - 0.025 ** (1 / 10)
    same, apart = means.difference("a", "c", of_shares=True), means.difference("a", "b", of_shares=True)
    assert (same.mean, same.low, same.high) == pytest.approx((0, -unmet, unmet))
    assert (apart.mean, apart.low, apart.high) == pytest.approx((1, 1 - 2 * unmet, 1))
    ratio = means.ratio("a", "c", of_shares=True)
    assert (ratio.mean, ratio.low, ratio.high) == pytest.approx((1, 1 - unmet, 1 / (1 - unmet)))
    none = means.ratio("a", "b", of_shares=True)
    assert math.isnan(none.mean)
    assert (none.low, none.high) == (None, None)


def test_a_model_beside_itself_may_differ_on_texts_that_were_not_met():
    right = (normal(50) > 0).double()
    found = means_of(right, right).difference("a", "b", of_shares=True)
    assert (found.mean, found.low, found.high) == pytest.approx((0, -0.0711, 0.0711), abs=1e-4)


def test_values_of_one_place_stand_and_fall_together():
    values = normal(100).repeat_interleave(4)
    together, apart = BootstrapMeans(), BootstrapMeans()
    together.update([row // 4 for row in range(400)], {"a": values})
    apart.update(range(400), {"a": values})
    four_times, once = together["a"], means_of(values[::4])["a"]
    assert (four_times.mean, four_times.low, four_times.high) == pytest.approx((once.mean, once.low, once.high))
    assert four_times.count == 400
    assert four_times.high - four_times.low > 1.5 * (apart["a"].high - apart["a"].low)


def test_many_values_of_one_place_have_no_interval():
    means = BootstrapMeans()
    means.update([3, 3, 3], {"a": torch.tensor([1.0, 2.0, 6.0])})
    assert (means["a"].mean, means["a"].low, means["a"].count) == (3.0, None, 3)
    means.update([4], {"a": torch.tensor([3.0])})
    assert means["a"].low is not None


def test_exact_ends_count_places_and_not_the_values_that_stand_together():
    together = BootstrapMeans()
    for sentence in range(10):
        # The words of a sentence, in two batches.
        together.update([sentence] * 15, {"right": torch.ones(15)})
        together.update([sentence] * 5, {"right": torch.ones(5)})
    found, apart = together.share("right"), means_of(torch.ones(10)).share("a")
    assert (found.low, found.high, found.count) == (apart.low, apart.high, 200)
    one = BootstrapMeans()
    one.update([3, 3], {"right": torch.ones(2)})
    one.update([3], {"right": torch.ones(1)})
    assert one.share("right").low is None
