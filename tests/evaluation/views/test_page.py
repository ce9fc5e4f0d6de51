import base64
import copy
import html
import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from lexical_sae.evaluation.intervals import Interval
from lexical_sae.evaluation.metrics.calibration import CALIBRATION, ReliabilityBin
from lexical_sae.evaluation.results import EvaluationResults
from lexical_sae.evaluation.views.decisions import decision_charts, decision_rows, decision_tables
from lexical_sae.evaluation.views.faithfulness import faithfulness_charts, faithfulness_rows, faithfulness_tables
from lexical_sae.evaluation.views.page import evaluation_part, measuring_table
from lexical_sae.evaluation.views.reliability import ACCURACY, COUNTS, LEFT, RIGHT, WIDTH, _short, reliability_svg
from lexical_sae.evaluation.views.words import word_rows, word_tables
from lexical_sae.report.page import Page, page_html
from tests.report.evaluations import evaluation, interval, remaining, results

SVG = "{http://www.w3.org/2000/svg}"
Place = tuple[str | int, ...]
NOT_COMPARED = {"labels", "seed", "seconds", "schema_version", "explainers", "error", "kendall", "top_word", "flips"}
NOT_COMPARED |= {"advantage", "megabytes", "low", "high", "sufficiency"}
NOT_SHOWN = ("model", "count")
"""Where the model lies may reveal local paths; nearly every figure is of all texts."""


def page(found: dict[str, Any]) -> str:
    return page_html(Page("t", evaluation=evaluation_part(EvaluationResults.from_dict(found))))


def told(page: str) -> str:
    return " ".join(re.sub("<[^>]*>", " ", page).split())


def leaves(value: Any, place: Place = ()) -> Iterator[Place]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if inside is None:
        if value is not None:
            yield place
        return
    for key, part in inside:
        yield from leaves(part, (*place, key))


def changed(found: dict[str, Any], place: Place) -> dict[str, Any]:
    """The same evaluation with one figure or name another one."""
    made = copy.deepcopy(found)
    part: Any = made
    for key in place[:-1]:
        part = part[key]
    old = part[place[-1]]
    if place == ("schema_version",):
        part["schema_version"] = 0  # newer ones are refused
        return made
    part[place[-1]] = not old if isinstance(old, bool) else f"{old}!" if isinstance(old, str) else old + old + 1
    return made


def written(plain: dict[str, Any]) -> list[str]:
    """All that the page says in words and figures; what pictures alone show does not count."""
    found = EvaluationResults.from_dict(plain)
    tables = [*decision_tables(found), *faithfulness_tables(found), *word_tables(found), measuring_table(found)]
    rows = [
        *decision_rows(found),
        *faithfulness_rows(found),
        *word_rows(found),
        *(row for one in tables for row in one.rows),
    ]
    return [
        *(line for one in tables for line in (one.title, one.note, *one.columns)),
        *(c for row in rows for c in row),
    ]


def test_every_figure_of_an_evaluation_is_told():
    found = evaluation()
    whole, places = written(found), set(leaves(found))
    untold = {place for place in places if written(changed(found, place)) == whole}
    # Of the comparison of methods, the page of `lexical-sae faithfulness` shows what is not here.
    compared = {place for place in untold if place[0] == "explainers" and NOT_COMPARED & set(place[1:])}
    # Budgets are those of the first order: they are the same for all.
    same = {p for p in places if p[-1] == "fraction" and p[2:3] in (("leave_one_out",), ("random",))}
    assert untold - compared == same | ({place for place in places if place[-1] in NOT_SHOWN} - compared)


def test_all_that_is_told_stands_on_the_page():
    words = " ".join(told(html.unescape(page(evaluation()))).split())
    for line in written(evaluation()):
        assert " ".join(line.split()) in words


def test_the_questions_come_first_and_the_tables_are_folded():
    whole = page(evaluation())
    before, *folded = whole.split("<details>")
    assert "How well does it decide?" in before
    assert "data:image/svg+xml" in before
    assert all("<table>" in one for one in folded)
    # The evaluation as a whole is a part of the report, and open where it is all of it.
    assert len(folded) == whole.count("</details>") - whole.count('<details class="part" open>') > 10
    assert "<details open" not in whole


def test_attribution_methods_stand_in_one_table_and_older_evaluations_have_none():
    found = evaluation()
    assert "direct 0.900 (0.850 to 0.950) 0.500 (0.450 to 0.550)" in told(page(found))
    assert "input lime – – – 0.300 (0.250 to 0.350) 1.5" in told(page(found))
    del found["explainers"]
    assert "Attribution methods compared" not in page(found)


def test_controls_stand_beside_what_they_control():
    words = told(page(evaluation()))
    assert "share of the words contributions leave-one-out random words 5% 0.500 (0.450 to 0.550) 0.500" in words
    assert "10% of the words, at random 4.0 (4.0 to 4.0) 60.0% (55.0% to 65.0%)" in words
    assert "no words 0 40.0% (35.0% to 45.0%)" in words
    assert "joint remainder 0.44 (0.39 to 0.49)" in words


def test_each_chart_names_itself_and_tells_what_it_shows():
    charts = [*decision_charts(results()), *faithfulness_charts(results())]
    assert len(charts) == 6
    for chart in charts:
        drawn = ElementTree.fromstring(chart.svg)
        assert drawn.find(f"{SVG}title").text == chart.title
        assert drawn.find(f"{SVG}desc").text == chart.description
        assert base64.b64encode(chart.svg.encode()).decode() in page(evaluation())


def test_charts_show_their_controls():
    circuits = faithfulness_charts(results())[0]
    for line in ("strongest words: 5 → 90, 10 → 90", "random words: 5 → 60, 10 → 60", "no words: 40"):
        assert line in circuits.description
    frontier = decision_charts(results())[1]
    assert "only the strongest words: 1 → 50, 9.5 → 50; all words: 80" in frontier.description


@pytest.mark.parametrize("nothing", [None, math.nan], ids=str)
def test_what_was_not_measured_is_a_dash_and_no_point(nothing):
    found = evaluation()
    unknown = {**interval(None), "mean": nothing}
    found["completeness"]["empty"]["agreement"] = unknown
    for size in found["completeness"]["sizes"]:
        size["circuit"] = size["random"] = dict.fromkeys(remaining(0.0), unknown)
    found["performance"]["classes"][0]["f1"] = None
    found["performance"]["macro_f1"] = None
    found |= {"masking": None, "probes": None, "frontier": [], "explainers": None}
    found["calibration"]["curve"] = []
    found["separation"] |= dict.fromkeys(("cosine", "cosine_by_chance", "jaccard_within", "jaccard"))
    found["downstream"]["language"] = None
    read = EvaluationResults.from_dict(found)
    assert [chart.title for chart in [*decision_charts(read), *faithfulness_charts(read)]] == [
        "Labels that change without the top-attributed words",
        "Probability lost without the top-attributed words",
        "Probability lost with the top-attributed words alone",
    ]
    words = told(page(found))
    assert "nan" not in words
    assert "None" not in words
    assert "81.0% 82.0% –" in words


def bins() -> tuple[ReliabilityBin, ...]:
    return results().get(CALIBRATION).curve


def test_the_diagonal_is_where_confidence_is_accuracy():
    exact = [replace(one, accuracy=Interval(**interval(one.confidence))) for one in bins()]
    drawn = ElementTree.fromstring(reliability_svg(exact))
    dots = [(float(dot.get("cx")), float(dot.get("cy"))) for dot in drawn.iter(f"{SVG}circle")]
    (guide,) = [path.get("d") for path in drawn.iter(f"{SVG}path") if path.get("class") == "guide"]
    x1, y1, x2, y2 = map(float, re.findall(r"[\d.]+", guide))
    for x, y in dots:
        assert y == pytest.approx(y1 + (x - x1) * (y2 - y1) / (x2 - x1), abs=0.2)
    over = ElementTree.fromstring(reliability_svg(bins()))
    places = [(float(dot.get("cx")), float(dot.get("cy"))) for dot in over.iter(f"{SVG}circle")]
    # These are right less often than they are confident, so they lie beneath it.
    assert all(y > y1 + (x - x1) * (y2 - y1) / (x2 - x1) + 5 for x, y in places)


def test_bins_show_their_texts_in_numbers_and_in_height():
    drawn = ElementTree.fromstring(reliability_svg(bins()))
    assert [text.text for text in drawn.iter(f"{SVG}text") if text.get("class") == "count"] == ["13", "1.2k"]
    small, large = (float(bar.get("height")) for bar in drawn.iter(f"{SVG}rect"))
    assert large == COUNTS[1] - COUNTS[0]
    assert small == pytest.approx(large * 13 / 1234, abs=0.1)
    assert "confidence 96.0%: right 90.0% (85.0% to 95.0%) of 1,234 texts" in drawn.find(f"{SVG}desc").text


@pytest.mark.parametrize("low", [0.0, 0.5, 14 / 15])
@pytest.mark.parametrize("accuracy", [0.0, 1.0])
def test_everything_lies_inside_the_frame(low, accuracy):
    one = ReliabilityBin(low, low + 1 / 15, 1, low + 0.05, Interval(accuracy, accuracy, accuracy, 1))
    drawn = ElementTree.fromstring(reliability_svg([one]))
    (dot,) = drawn.iter(f"{SVG}circle")
    (bar,) = drawn.iter(f"{SVG}rect")
    assert LEFT <= float(dot.get("cx")) <= WIDTH - RIGHT
    assert ACCURACY[0] <= float(dot.get("cy")) <= ACCURACY[1]
    assert float(bar.get("x")) >= LEFT
    assert float(bar.get("x")) + float(bar.get("width")) <= WIDTH - RIGHT + 0.1


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="no bins"):
        reliability_svg([])


@pytest.mark.parametrize(("count", "short"), [(9, "9"), (999, "999"), (1234, "1.2k"), (9970, "10k"), (56789, "57k")])
def test_counts_are_short(count, short):
    assert _short(count) == short
