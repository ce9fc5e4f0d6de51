import pytest

from lexical_sae.runs.seeds import over_seeds


def figure(mean, kind="mean"):
    return {kind: mean, "low": 0.0, "high": 1.0, "count": 500}


def measured(mean, **others):
    return {"label": "good", "texts": 9, "flips": figure(mean), **others}


def test_a_mean_or_a_share_gets_its_interval_over_seeds_and_what_it_is_of_stays():
    found = over_seeds([measured(value, passed=figure(value, "share")) for value in (0.1, 0.2, 0.3)])
    # Student's t for two degrees of freedom, 4.303, times 0.1 / sqrt(3).
    interval = pytest.approx({"mean": 0.2, "low": 0.2 - 0.24841, "high": 0.2 + 0.24841, "count": 3}, abs=1e-4)
    assert found == {"label": "good", "texts": 9, "flips": interval, "passed": interval}


def test_counts_and_names_that_differ_are_left_out():
    found = over_seeds([measured(0.1, rows=1, worst="a"), measured(0.2, rows=2, worst="b", extra=1)])
    assert set(found) == {"label", "texts", "flips"}


def test_controls_without_an_interval_of_their_own_are_averaged_too_and_the_worst_stays_the_worst():
    found = over_seeds([measured(0.1, by_chance=0.5, worst_error=3e-7), measured(0.1, by_chance=0.7, worst_error=1e-7)])
    assert (found["by_chance"]["mean"], found["by_chance"]["count"]) == (pytest.approx(0.6), 2)
    assert found["worst_error"] == 3e-7


def test_rows_of_lists_are_paired_by_what_they_are_of():
    bins = [[{"low": low, "accuracy": figure(low + i)} for low in lows] for i, lows in enumerate(((0, 1), (1, 2)))]
    (row,) = over_seeds(bins)
    assert (row["low"], row["accuracy"]["mean"]) == (1, 1.5)
    assert over_seeds([["a", "b"], ["a", "b"]]) == ["a", "b"]


def test_a_figure_that_a_seed_does_not_know_is_averaged_over_the_others():
    found = over_seeds([measured(None), measured(0.4), measured(0.2)])
    assert (found["flips"]["mean"], found["flips"]["count"]) == (pytest.approx(0.3), 2)
    assert "flips" not in over_seeds([measured(None), measured(None)])
