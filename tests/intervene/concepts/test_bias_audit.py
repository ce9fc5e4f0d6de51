import numpy as np
import pytest
import torch

from lexical_sae.data import TextSplit
from lexical_sae.intervene import SuppressedModel
from lexical_sae.intervene.concepts.bias_audit import audit, bootstrap, evaluate_bias, groups_of
from lexical_sae.intervene.concepts.fairness import Decisions, Group
from tests import tiny


def decisions(gap: float, size: int = 400, seed: int = 0) -> tuple[Decisions, Group]:
    """Texts of which a group's harmless ones are called harmful more often, by `gap`."""
    rng = np.random.default_rng(seed)
    truth, member = rng.random(size) < 0.5, rng.random(size) < 0.5
    flagged = np.where(truth, rng.random(size) < 0.8, rng.random(size) < 0.1 + gap * member)
    return Decisions(truth, flagged, flagged + 0.1 * rng.random(size)), Group("sailors", member, ~member)


def test_a_planted_gap_is_found_with_an_interval_around_it():
    found = audit(*_one(0.4))
    (group,) = found.groups
    gap = group.figures["fpr_gap_background"]
    assert gap.low is not None
    assert gap.high is not None
    assert 0.25 < gap.low < gap.mean < gap.high < 0.55
    assert group.figures["bpsn_auc"].mean < group.figures["bnsp_auc"].mean
    assert found.worst_fpr_gap.mean == pytest.approx(abs(gap.mean))
    assert found.as_dict()["groups"][0]["texts"] == group.texts


def test_without_a_gap_the_interval_holds_zero():
    gap = audit(*_one(0.0)).groups[0].figures["fpr_gap_background"]
    assert gap.low is not None
    assert gap.high is not None
    assert gap.low < 0 < gap.high


def test_intervals_cover_the_truth_as_often_as_they_say():
    covered = 0
    for seed in range(30):
        made, group = decisions(0.3, 200, seed)
        gap = audit(made, [group], rounds=100).groups[0].figures["fpr_gap_background"]
        assert gap.low is not None
        assert gap.high is not None
        covered += gap.low <= 0.3 <= gap.high
    assert covered >= 25


def test_groups_that_are_too_small_are_said_so_and_count_for_nothing():
    made, group = decisions(0.0)
    few = np.zeros(400, dtype=bool)
    few[np.flatnonzero(~made.truth)[:9]] = True
    wild = Decisions(made.truth, made.flagged | few, made.score)
    found = audit(wild, [group, Group("captains", few, ~few)])
    assert [group.name for group in found.groups if group.is_too_small] == ["captains"]
    assert found.groups[1].figures == {}
    assert found.groups[1].negatives == 9
    assert found.worst_fpr_gap.mean == audit(wild, [group]).worst_fpr_gap.mean


def test_texts_without_identities_are_refused_not_called_fair():
    with pytest.raises(ValueError, match="no identity columns"):
        groups_of(TextSplit(("a", "b"), (0, 1)))


def test_a_text_that_nobody_was_asked_about_is_in_no_group():
    (group,) = groups_of(TextSplit(("a", "b", "c"), (0, 1, 0), {"x": (0.5, float("nan"), 0.2)}))
    assert group.member.tolist() == [True, False, False]
    assert group.background.tolist() == [False, False, True]


def test_large_data_is_resampled_in_parts(monkeypatch):
    monkeypatch.setattr("lexical_sae.intervene.concepts.bias_audit.CELLS_AT_ONCE", 10)
    found = bootstrap(lambda w: {"mean": (w @ np.arange(4.0)) / w.sum(1).clip(min=1)}, 4, rounds=11)
    assert found["mean"].mean == 1.5
    assert found["mean"].low is not None


def test_a_model_is_audited_with_and_without_a_word():
    model = tiny.model()
    with torch.no_grad():
        model.backbone.decoder_bias.add_(2.0)
    texts = tuple(f"{a} {b}" for a in ("film", "movie") for b in (*tiny.GOOD, *tiny.BAD) for _ in range(3))
    group = tuple(float(text.startswith("film")) for text in texts)
    split = TextSplit(texts, (0,) * len(texts), {"film": group})
    found = evaluate_bias(model, split, [1, 2])
    assert found.groups[0].negatives == 24
    assert found.texts == 48
    assert evaluate_bias(SuppressedModel(model, ["good"]), split, [1, 2]).texts == 48


def _one(gap: float) -> tuple[Decisions, list[Group]]:
    made, group = decisions(gap)
    return made, [group]
