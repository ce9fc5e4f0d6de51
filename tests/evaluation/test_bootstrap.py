import math

import numpy as np
import pytest
import torch

from splade.evaluation.bootstrap import BootstrapMeans
from splade.evaluation.intervals import mean_and_interval


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
