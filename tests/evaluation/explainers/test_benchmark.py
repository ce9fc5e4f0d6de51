import json
from dataclasses import replace

import pytest
import torch

from lexical_sae.data.sources.rationales import Rationale, RationaleTexts
from lexical_sae.evaluation.explainers.benchmark import compare_explainers
from lexical_sae.evaluation.explainers.explainer import ArenaSettings
from lexical_sae.evaluation.explainers.results import check
from lexical_sae.evaluation.intervals import Interval
from lexical_sae.utils.files import write_json
from tests import tiny
from tests.evaluation.corpora import TEXTS
from tests.evaluation.explainers.cases import model

SETTINGS = ArenaSettings(seeds=2, path_steps=8, shapley_orders=4, with_captum=False, memory_texts=1)
RATIONALES = RationaleTexts(
    "invented",
    (
        Rationale("the acting was terrible", ((15, 23),)),
        Rationale("a good film", ((2, 6),)),
        Rationale("boring", ((0, 6),)),
    ),
)
NAMES = {"direct", "leave_one_out", "path", "integrated_gradients", "gradient", "attention", "shapley", "random"}


@pytest.fixture(scope="module")
def steps():
    return []


@pytest.fixture(scope="module")
def results(steps):
    return compare_explainers(model(), TEXTS, [RATIONALES], SETTINGS, steps.append)


def test_everybody_stands_on_every_ground_that_they_can(results):
    assert set(results.removal) == NAMES
    everybody = NAMES | {"input_occlusion"}
    assert set(results.deletion) == set(results.cost) == set(results.explainers) == everybody
    people = results.rationales["invented"]
    assert set(people.scores) == everybody
    # Of "boring" people marked everything.
    assert (people.texts, people.left_out, people.seen_share) == (2, 1, 1)
    assert people.marked_share == pytest.approx((1 / 4 + 1 / 3) / 2)
    assert results.removal["direct"].spearman.count == results.texts == 7
    assert results.texts_without_words == 1
    assert results.left_out == ("integrated gradients and LIME at the input were not asked for",)


def test_the_checks_hold_and_random_is_below_whoever_knows_something(results):
    assert results.checks.leave_one_out_is_first
    assert results.checks.random_is_last
    assert results.checks.direct_minus_gradient_times_activation < 1e-10
    low = results.removal["random"].spearman.mean
    for name in ("direct", "path", "integrated_gradients", "gradient", "shapley"):
        assert results.removal[name].spearman.mean > low
        assert results.removal[name].erasure.advantage.mean > 0


def interval(mean, reach=0.01):
    return Interval(mean, mean - reach, mean + reach, 9)


def test_a_check_can_fail(results):
    made = dict(results.removal)
    made["attention"] = replace(made["attention"], spearman=interval(-0.9))
    assert not check(made, "random", 0.0).random_is_last
    made = dict(results.removal)
    made["leave_one_out"] = replace(made["leave_one_out"], error=interval(0.1))
    assert not check(made, "random", 0.0).leave_one_out_is_first
    made["leave_one_out"] = replace(results.removal["leave_one_out"], spearman=interval(0.2))
    assert not check(made, "random", 0.0).leave_one_out_is_first


def test_the_results_go_through_json_and_progress_is_told(results, steps, tmp_path):
    found = json.loads(write_json(tmp_path / "faithfulness.json", results.as_dict()).read_text())
    assert found["schema_version"] == 1
    assert found["removal"]["random"]["error"]["mean"] is None
    assert [b["fraction"] for b in found["deletion"]["direct"]["erasure"]["budgets"]] == [0.01, 0.05, 0.1, 0.2, 0.5]
    assert found["explainers"]["shapley"] == {
        "about": "Shapley values over active words, 4 random orders",
        "is_drawn": True,
    }
    assert found["cost"]["leave_one_out"]["milliseconds"]["mean"] > 0
    assert [(step.task, step.done, step.total) for step in steps] == [
        *(("explaining texts", done, len(TEXTS)) for done in range(1, len(TEXTS) + 1)),
        ("comparing with people (invented)", 1, 2),
        ("comparing with people (invented)", 2, 2),
    ]


def test_the_same_seed_gives_the_same_figures(results):
    again = compare_explainers(model(), TEXTS, [RATIONALES], SETTINGS)
    for part in ("removal", "deletion", "rationales"):
        assert repr(getattr(results, part)) == repr(getattr(again, part))


def test_a_model_without_words_is_refused():
    silent = tiny.model()
    silent.gate.close(torch.ones(len(silent.dimensions), dtype=torch.bool))
    with pytest.raises(ValueError, match="none of 8 texts has a word that is active"):
        compare_explainers(silent, TEXTS, settings=SETTINGS)


def test_rationales_that_the_model_never_saw_are_refused():
    far = RationaleTexts("far", (Rationale("a film " * 80 + "awful", ((560, 565),)),))
    with pytest.raises(ValueError, match="take a model that reads longer texts"):
        compare_explainers(model(), TEXTS[:1], [far], SETTINGS)


def test_marks_beyond_the_limit_count_as_not_seen():
    far = Rationale("a film " * 80 + "awful awful", ((560, 571),))
    near = Rationale("the acting was terrible", ((15, 23),))
    (found,) = compare_explainers(
        model(), TEXTS[:1], [RationaleTexts("far", (near, far))], SETTINGS
    ).rationales.values()
    assert (found.texts, found.left_out) == (1, 1)
    assert found.seen_share == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"seeds": 0}, "seeds is 0"), ({"fractions": ()}, "shares above 0"), ({"fractions": (1.5,)}, "shares above 0")],
    ids=["seeds", "no-budget", "large-budget"],
)
def test_sizes_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        ArenaSettings(**settings)
