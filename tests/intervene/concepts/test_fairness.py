import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from lexical_sae.intervene.concepts.fairness import (
    Decisions,
    Group,
    area_under_curve,
    equalised_odds_difference,
    group_figures,
    rate,
    worst_fpr_gap,
)

ONCE = np.ones((1, 8))
TRUTH = np.array([0, 0, 0, 0, 1, 1, 0, 1], dtype=bool)
SAID = np.array([1, 1, 0, 0, 1, 0, 0, 1], dtype=bool)
SCORE = np.array([0.9, 0.8, 0.2, 0.1, 0.7, 0.3, 0.4, 0.6])
MEMBER = np.array([1, 1, 1, 0, 1, 1, 0, 0], dtype=bool)
UNASKED = np.array([0, 0, 0, 0, 0, 0, 1, 0], dtype=bool)
DECISIONS = Decisions(TRUTH, SAID, SCORE)
GROUP = Group("sailors", MEMBER, ~MEMBER & ~UNASKED)


def figures() -> dict[str, float]:
    return {name: float(values[0]) for name, values in group_figures(DECISIONS, GROUP, ONCE).items()}


def test_the_figures_of_a_group_are_those_worked_out_by_hand():
    found = figures()
    assert found["fpr"] == pytest.approx(2 / 3)  # texts 0, 1 of 0, 1, 2
    assert found["fpr_gap_background"] == pytest.approx(2 / 3 - 0)  # background: text 3 alone, text 6 was not asked
    assert found["fpr_gap_overall"] == pytest.approx(2 / 3 - 2 / 5)
    assert found["tpr"] == pytest.approx(1 / 2)
    assert found["tpr_gap_background"] == pytest.approx(1 / 2 - 1)
    assert found["equalised_odds"] == pytest.approx(2 / 3)
    assert found["subgroup_auc"] == pytest.approx(2 / 6)  # 0.7 and 0.3 against 0.9, 0.8, 0.2
    assert found["bpsn_auc"] == pytest.approx(1 / 3)  # 0.6 of the background against 0.9, 0.8, 0.2
    assert found["bnsp_auc"] == pytest.approx(1)  # 0.7 and 0.3 against 0.1


def test_a_rate_over_nothing_is_not_a_number():
    nothing = np.zeros(8, dtype=bool)
    assert np.isnan(rate(SAID, nothing, ONCE)).all()
    assert np.isnan(area_under_curve(nothing, nothing, SCORE, ONCE)).all()
    assert np.isnan(area_under_curve(TRUTH, nothing, SCORE, ONCE)).all()


@given(st.integers(0, 10_000))
def test_the_area_is_the_weighted_one_of_scikit_learn_ties_included(seed):
    rng = np.random.default_rng(seed)
    truth = np.r_[True, False, rng.random(18) < 0.4]
    score = rng.integers(0, 5, 20) / 4
    weights = rng.poisson(1.0, (3, 20)).astype(float)
    weights[:, :2] += 1
    expected = [roc_auc_score(truth, score, sample_weight=line) for line in weights]
    np.testing.assert_allclose(area_under_curve(truth, ~truth, score, weights), expected, atol=1e-12)


@given(st.integers(0, 10_000))
def test_weights_stand_for_texts_that_are_there_several_times(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, 8)
    rows = np.repeat(np.arange(8), counts)
    again = Decisions(TRUTH[rows], SAID[rows], SCORE[rows])
    group = Group("sailors", GROUP.member[rows], GROUP.background[rows])
    weighed = group_figures(DECISIONS, GROUP, counts[None].astype(float))
    for name, values in group_figures(again, group, np.ones((1, len(rows)))).items():
        np.testing.assert_allclose(weighed[name], values, err_msg=name)


def exclusive(seed: int) -> tuple[Decisions, list[Group], np.ndarray]:
    rng = np.random.default_rng(seed)
    of = np.r_[np.repeat([0, 1, 2], 4), rng.integers(0, 3, 60)]
    truth = np.r_[[True, False] * 6, rng.random(60) < 0.5]
    flagged = rng.random(72) < 0.3 + 0.2 * of
    return Decisions(truth, flagged, flagged.astype(float)), [Group(str(g), of == g, of != g) for g in range(3)], of


@pytest.mark.parametrize("seed", range(3))
def test_equalised_odds_are_the_ranges_over_groups(seed):
    decisions, groups, of = exclusive(seed)
    ranges = []
    for side in (True, False):
        rates = [decisions.flagged[(of == g) & (decisions.truth == side)].mean() for g in range(3)]
        ranges.append(max(rates) - min(rates))
    assert equalised_odds_difference(decisions, groups, np.ones((1, 72)))[0] == pytest.approx(max(ranges))


@pytest.mark.parametrize("seed", range(3))
def test_equalised_odds_are_those_of_fairlearn(seed):
    metrics = pytest.importorskip("fairlearn.metrics")
    decisions, groups, of = exclusive(seed)
    expected = metrics.equalized_odds_difference(decisions.truth, decisions.flagged, sensitive_features=of)
    assert equalised_odds_difference(decisions, groups, np.ones((1, 72)))[0] == pytest.approx(expected)


def test_the_worst_gap_is_that_of_the_worst_group_and_none_is_none():
    other = Group("farmers", ~MEMBER, MEMBER)
    gap = worst_fpr_gap(DECISIONS, [GROUP, other], ONCE)
    assert gap[0] == pytest.approx(2 / 3)
    assert worst_fpr_gap(DECISIONS, [], ONCE).tolist() == [0.0]
    assert equalised_odds_difference(DECISIONS, [], ONCE).tolist() == [0.0]
