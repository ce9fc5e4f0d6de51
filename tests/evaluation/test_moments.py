import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.evaluation.intervals import mean_and_interval
from lexical_sae.evaluation.moments import Moments

SIZE = 4
numbers = st.lists(st.tuples(st.integers(0, SIZE - 2), st.floats(-100, 100)), max_size=30)


def filled(pairs, cuts=()) -> Moments:
    """The numbers given in batches that end at the cuts."""
    moments = Moments(SIZE)
    for start, end in zip((0, *cuts), (*cuts, len(pairs)), strict=True):
        cells, values = [cell for cell, _ in pairs[start:end]], [value for _, value in pairs[start:end]]
        moments.update(torch.tensor(cells, dtype=torch.long), torch.tensor(values, dtype=torch.float64))
    return moments


@given(numbers, st.data())
def test_batches_give_what_two_passes_over_all_numbers_give(pairs, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(pairs)), max_size=4)))
    moments = filled(pairs, cuts)
    for cell in range(SIZE):
        own = [value for at, value in pairs if at == cell]
        assert moments.count[cell] == len(own)
        if own:
            assert float(moments.mean[cell]) == pytest.approx(np.mean(own), abs=1e-10)
            assert float(moments.squares[cell]) == pytest.approx(np.var(own) * len(own), abs=1e-8)
        if len(own) > 1:
            assert float(moments.spread[cell]) == pytest.approx(np.std(own, ddof=1), abs=1e-6)


@given(numbers, st.integers(0, 5))
def test_numbers_that_were_not_given_count_as_zero(pairs, more):
    moments = filled(pairs)
    totals = moments.count + more
    means = moments.means_over(totals)
    for cell in range(SIZE):
        own = [value for at, value in pairs if at == cell] + [0.0] * more
        if not own:
            assert float(means.mean[cell]) == 0
            assert means.ends(cell) == (None, None)
            continue
        expected = mean_and_interval(own)
        assert float(means.mean[cell]) == pytest.approx(expected.mean, abs=1e-10)
        assert means.ends(cell) == (pytest.approx(expected.low, abs=1e-6), pytest.approx(expected.high, abs=1e-6))


def test_large_numbers_close_together_keep_their_spread():
    values = 1e9 + np.array([0.0, 1.0, 2.0, 3.0])
    moments = filled([(0, value) for value in values], cuts=(1, 3))
    assert float(moments.spread[0]) == pytest.approx(np.std(values, ddof=1), rel=1e-9)


def test_an_empty_batch_changes_nothing():
    moments = filled([(0, 2.0), (0, 4.0)], cuts=(0, 2))
    assert (float(moments.mean[0]), float(moments.count[0])) == (3.0, 2.0)
    assert float(moments.means().mean[0]) == 3.0
