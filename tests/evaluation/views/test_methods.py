import io
import json
import math
from copy import deepcopy

import pytest
from rich.console import Console

from lexical_sae.evaluation.explainers.results import ArenaResults
from lexical_sae.evaluation.views.methods import explainers_page, explainers_summary, explainers_tables
from lexical_sae.report.page import Page, page_html
from lexical_sae.report.tables import tables_html, tables_view


def interval(mean, reach=0.1):
    if mean is None:
        return {"mean": None, "low": None, "high": None, "count": 0}
    return {"mean": mean, "low": mean - reach, "high": mean + reach, "count": 9}


def erasure(mean, seeds=None):
    headline = {key: interval(mean) for key in ("comprehensiveness", "sufficiency", "flips", "advantage")}
    return {**headline, "between_seeds": seeds, "budgets": []}


def removal(mean, error):
    ranks = {key: interval(mean) for key in ("spearman", "kendall", "top_word")}
    return {**ranks, "error": {"mean": error, "low": None, "high": None, "count": 0}, "erasure": erasure(mean)}


read = ArenaResults.from_dict
NAMES = ("leave_one_out", "random", "direct")
FOUND = {
    "texts": 9,
    "labels": ["negative", "positive"],
    "seed": 0,
    "seconds": 1.0,
    "texts_without_words": 2,
    "seeds": 3,
    "explainers": {name: {"about": "<b>what</b> it does", "is_drawn": False} for name in NAMES},
    "left_out": ["captum is <missing>"],
    "removal": {"leave_one_out": removal(1.0, 0.0), "random": removal(0.0, None), "direct": removal(0.5, math.nan)},
    "deletion": {"direct": {"erasure": erasure(0.2)}, "random": {"erasure": erasure(0.3, interval(0.3, 0.05))}},
    "rationales": {
        "<i>movies</i>": {
            "texts": 5,
            "left_out": 1,
            "marked_share": 0.25,
            "seen_share": 0.5,
            "scores": {
                "direct": {key: interval(0.4) for key in ("auprc", "token_f1", "iou_f1", "advantage")}
                | {"between_seeds": None},
            },
        }
    },
    "cost": {
        name: {"milliseconds": interval(cost), "megabytes": {"mean": megabytes, "low": None, "high": None, "count": 0}}
        for name, cost, megabytes in (("direct", 0.7, 1.2), ("random", 0.1, math.nan), ("leave_one_out", 1.3, None))
    },
    "prediction_milliseconds": interval(12.0),
    "checks": {
        "leave_one_out_is_first": True,
        "random_is_last": True,
        "direct_minus_gradient_times_activation": 2e-8,
    },
}


def test_every_ground_is_in_the_order_that_was_found():
    removed, deleted, people, cost = explainers_tables(read(FOUND))
    assert [row[0] for row in removed.rows] == ["leave one out", "direct", "random"]
    assert [row[0] for row in deleted.rows] == ["random", "direct"]
    assert [row[0] for row in cost.rows] == ["random", "direct", "leave one out"]
    assert people.rows[0][1] == "0.400 (0.300 to 0.500)"
    for table in (removed, deleted, people, cost):
        assert {len(row) for row in table.rows} == {len(table.columns)}


@pytest.mark.parametrize("found", [FOUND, json.loads(json.dumps(FOUND))], ids=["fresh", "read-back"])
def test_what_was_not_measured_is_a_dash(found):
    removed, deleted, _, cost = explainers_tables(read(found))
    off_by = {row[0]: row[3] for row in removed.rows}
    assert off_by == {"leave one out": "0.0%", "direct": "–", "random": "–"}
    assert {row[0]: row[2] for row in deleted.rows} == {"direct": "–", "random": "0.250 to 0.350"}
    assert {row[0]: row[2] for row in cost.rows} == {"direct": "1", "random": "–", "leave one out": "–"}


def test_a_check_that_fails_is_said():
    broken = deepcopy(FOUND)
    broken["checks"] |= {"leave_one_out_is_first": False, "random_is_last": False}
    good, bad = (" ".join(explainers_summary(read(one))) for one in (FOUND, broken))
    assert "leave-one-out is first on single" in good
    assert "random order is last as far as the intervals show." in good
    assert "do not trust these figures" in bad
    assert "a method is reliably worse than it" in bad
    assert "Left out: 2 texts" in good


@pytest.mark.parametrize(("seeds", "said"), [(1, "ran with one seed."), (3, "ran with 3 seeds.")])
def test_seeds_are_counted_as_people_count(seeds, said):
    assert said in explainers_summary(read(FOUND | {"seeds": seeds}))[0]


def test_the_terminal_shows_names_and_reasons_as_they_are():
    page = io.StringIO()
    Console(file=page, width=250).print(tables_view(explainers_page("A run", read(FOUND))))
    for piece in ("leave one out", "captum is <missing>", "<i>movies</i>", "gradient × activation"):
        assert piece in page.getvalue()


def test_gradient_times_activation_is_said_to_be_direct_attribution_only_where_it_is():
    other = deepcopy(FOUND)
    other["explainers"]["gradient_times_activation"] = {"about": "slope times strength", "is_drawn": False}
    told = [
        " ".join([*page.summary, *page.limits])
        for page in (explainers_page("", read(FOUND)), explainers_page("", read(other)))
    ]
    assert ["Direct attribution is gradient × activation here" in one for one in told] == [True, False]
    assert ["gradient × activation differ by at most 2e-08" in one for one in told] == [True, False]


@pytest.mark.parametrize("is_of_run", [False, True])
def test_pages_escape_every_string_and_stand_alone(is_of_run):
    contest = explainers_page("A <run>", read(FOUND))
    page = page_html(Page("A <run>", explainers=contest)) if is_of_run else tables_html(contest)
    assert "&lt;i&gt;movies&lt;/i&gt;" in page
    assert "&lt;b&gt;what" in page
    assert "<i>" not in page
    assert "<b>" not in page
    assert "<script" not in page
    assert "<title>A &lt;run&gt;</title>" in page
    assert page.count("<table>") == 4
    assert all(line in page for line in ("captum is &lt;missing&gt;", "gradient × activation"))
