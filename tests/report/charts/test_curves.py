import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.report.charts.curves import POINTS, _smoothed, training_curves

SVG = "{http://www.w3.org/2000/svg}"


def lines(svg: str) -> list[list[tuple[float, ...]]]:
    found = ElementTree.fromstring(svg).iter(f"{SVG}polyline")
    return [[tuple(map(float, p.split(","))) for p in line.get("points").split()] for line in found]


def steps(count: int, **figures) -> list[dict]:
    return [{"step": i + 1, "ce": 1.0 - i / count, "rates": {"head": 0.1}, **figures} for i in range(count)]


def test_every_figure_of_a_run_has_a_chart_and_each_term_its_own():
    records = steps(3, active_words=9.0, **{"lambda": 1.0}, mu=0.5, own_words=0.1, completeness_kl=0.2, violation=-0.1)
    titles = [curve.title for curve in training_curves(records)]
    assert titles == [
        "Cross-entropy",
        "Active words",
        "Multipliers",
        "Term: own words",
        "Term: completeness kl",
    ]


def test_charts_without_data_are_left_out():
    assert training_curves([]) == ()
    assert training_curves([{"event": "learning rate found", "lr": 0.1}]) == ()
    assert [curve.title for curve in training_curves(steps(2))] == ["Cross-entropy"]


@pytest.mark.parametrize("odd", [None, float("nan"), float("inf"), "text", True], ids=str)
def test_what_is_no_number_is_left_out(odd):
    (curve,) = training_curves([*steps(4), {"step": 5, "ce": odd, "term": odd}])
    assert len(lines(curve.svg)[0]) == 4


def test_validation_stands_at_the_step_it_came_after():
    first = {"event": "validation", "epoch": 1, "ce": 0.9, "accuracy": 0.5}
    (curve,) = training_curves([*steps(3)[:2], first, steps(3)[2], {**first, "epoch": 2}])
    training, validation = lines(curve.svg)
    assert [x for x, _ in validation] == [x for x, _ in training][1:]
    assert "validation from 0.9 to 0.9, up to step 3" in curve.description


def test_multipliers_share_a_chart():
    curves = training_curves(steps(2, **{"lambda": 2.0}, mu=3.0))
    assert curves[-1].description == "Multipliers: lambda (CE) from 2 to 2; mu (words) from 3 to 3, up to step 2"


@given(st.integers(1, 300))
def test_few_points_are_drawn_and_each_stands_for_about_as_many_steps(count):
    line = _smoothed("x", [(x, 3.0 * x) for x in range(count)])
    assert len(line.x) == min(count, POINTS)
    assert line.y == pytest.approx([3.0 * x for x in line.x])
    gaps = [after - before for before, after in zip(line.x, line.x[1:], strict=False)]
    assert all(abs(gap - count / len(line.x)) <= 1 for gap in gaps)


def test_a_point_is_the_mean_of_its_steps():
    line = _smoothed("x", [(x, float(x % 2)) for x in range(4 * POINTS)])
    assert line.y == [0.5] * POINTS
    assert line.x[:2] == [1.5, 5.5]
