import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.report.charts.svg import (
    BOTTOM,
    COLOURS,
    HEIGHT,
    LEFT,
    LETTER,
    ON_DARK,
    RIGHT,
    SAMPLE,
    TITLE,
    WIDTH,
    Axis,
    Series,
    legend_places,
    line_chart,
)

SVG = "{http://www.w3.org/2000/svg}"


def points(svg: str) -> list[list[tuple[float, ...]]]:
    lines = ElementTree.fromstring(svg).iter(f"{SVG}polyline")
    return [[tuple(map(float, p.split(","))) for p in line.get("points").split()] for line in lines]


@given(
    st.lists(st.tuples(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6)), min_size=1, max_size=8),
    st.booleans(),
    st.booleans(),
)
def test_every_point_lies_inside_the_frame(data, log_x, log_y):
    x, y = zip(*data, strict=True)
    (drawn,) = points(line_chart("t", Axis("x", log_x), Axis("y", log_y), [Series("a", x, y)]))
    assert len(drawn) == len(data)
    assert all(LEFT <= across <= WIDTH - RIGHT and TITLE < down <= HEIGHT - BOTTOM for across, down in drawn)


def test_larger_values_are_drawn_higher_and_further_right():
    svg = line_chart("t", Axis("x"), Axis("y"), [Series("a", [1, 2, 3], [10, 30, 20])])
    ((x1, y1), (x2, y2), (x3, y3)) = points(svg)[0]
    assert x1 < x2 < x3
    assert y2 < y3 < y1


@pytest.mark.parametrize("nasty", ["<script>alert(1)</script>", '"onmouseover="x', "a & b", "\x00\x1b[31m", "]]>"])
def test_names_from_outside_cannot_become_markup(nasty):
    svg = line_chart(nasty, Axis(nasty), Axis(nasty), [Series(nasty, [1, 2], [1, 2])])
    root = ElementTree.fromstring(svg)
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= set(
        ["svg", "style", "g", "text", "path", "polyline", "circle", "title"]
    )
    assert all(not name.startswith("on") for element in root.iter() for name in element.attrib)


def test_each_series_has_a_legend_and_its_own_look():
    names = [f"line {i}" for i in range(12)]
    svg = line_chart("t", Axis("x"), Axis("y"), [Series(name, [1, 2], [i, i + 1]) for i, name in enumerate(names)])
    root = ElementTree.fromstring(svg)
    texts = {element.text for element in root.iter(f"{SVG}text")}
    assert set(names) <= texts
    groups = list(root.iter(f"{SVG}g"))
    looks = {(group.get("class"), group.find(f"{SVG}polyline").get("stroke-dasharray")) for group in groups}
    assert len(looks) == 12
    style = next(root.iter(f"{SVG}style")).text
    light, dark = style.split(".line0{", 1)[1].split("@media(prefers-color-scheme:dark)")
    assert all(colour in light for colour in COLOURS)
    assert all(colour in dark for colour in ON_DARK)


def test_the_legend_lies_above_the_lines_and_inside_a_small_chart():
    names = ["training", "validation", "a third line with a longer name"]
    svg = line_chart("t", Axis("x"), Axis(""), [Series(name, [1, 2], [0, 9]) for name in names], width=420, height=270)
    root = ElementTree.fromstring(svg)
    assert root.get("viewBox") == "0 0 420 270"
    places = {e.text: (float(e.get("x")), float(e.get("y"))) for e in root.iter(f"{SVG}text") if e.text in names}
    assert all(x + LETTER * len(name) <= 420 for name, (x, _) in places.items())
    assert max(y for _, y in places.values()) < min(y for line in points(svg) for _, y in line)
    assert max(x for line in points(svg) for x, _ in line) == 420 - RIGHT


@given(st.lists(st.text(max_size=30), min_size=1, max_size=8), st.integers(100, 600))
def test_names_of_a_legend_do_not_overlap_and_stay_inside_where_they_fit(names, width):
    ends: dict[int, float] = {}
    for name, (at, row) in zip(names, legend_places(names, width), strict=True):
        assert at >= ends.get(row, 0.0)
        ends[row] = at + SAMPLE + LETTER * len(name)
        assert at == 0 or ends[row] <= width
    assert list(ends) == list(range(len(ends)))


def test_neighbouring_lines_differ_without_their_colours():
    svg = line_chart("t", Axis("x"), Axis("y"), [Series(f"{i}", [1, 2], [i, i]) for i in range(4)])
    dashes = [line.get("stroke-dasharray") for line in ElementTree.fromstring(svg).iter(f"{SVG}polyline")]
    assert len(set(dashes)) == 4


def test_intervals_are_upright_lines_inside_the_frame_around_their_points():
    svg = line_chart("t", Axis("x"), Axis("y"), [Series("a", [1, 2], [5, 6], [(1, 9), None])])
    root = ElementTree.fromstring(svg)
    (upright,) = [path.get("d") for path in root.iter(f"{SVG}path") if path.get("stroke") and "V" in path.get("d")]
    x, low, high = map(float, re.findall(r"[\d.]+", upright))
    assert (x, low > points(svg)[0][0][1] > high) == (points(svg)[0][0][0], True)
    assert TITLE < high < low <= HEIGHT - BOTTOM


def test_a_guide_is_named_but_has_no_points():
    svg = line_chart("t", Axis("x"), Axis("y"), [Series("a", [1], [5]), Series("floor", [1, 2], [3, 3], is_guide=True)])
    root = ElementTree.fromstring(svg)
    assert len(list(root.iter(f"{SVG}circle"))) == 1
    assert "floor" in {element.text for element in root.iter(f"{SVG}text")}


@pytest.mark.parametrize("from_zero", [True, False])
def test_an_axis_begins_at_zero_where_that_is_wanted(from_zero):
    svg = line_chart("t", Axis("x"), Axis("y", from_zero=from_zero), [Series("a", [1, 2], [80, 90])])
    ticks = [element.text for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    assert ticks.count("0") == 1 + from_zero, "one is that of the other axis"
    assert ("80" in ticks) != from_zero


def test_named_places_are_written_under_their_points_as_far_as_there_is_room():
    months = tuple(f"2026-{month:02}" for month in range(1, 13))
    drawn = line_chart("t", Axis("", names=months), Axis(""), [Series("a", range(12), range(12))], width=420)
    written = re.findall(r">(2026-\d\d)</text>", drawn)
    assert written == list(months[::2])
    assert re.findall(
        r">(2026-\d\d)</text>", line_chart("t", Axis("", names=months[:1]), Axis(""), [Series("a", [0], [1])])
    )


def test_what_a_chart_shows_is_told_in_words_that_stay_text():
    svg = line_chart("t", Axis("x"), Axis("y"), [Series("a", [1], [5])], told="a < b")
    assert ElementTree.fromstring(svg).find(f"{SVG}desc").text == "a < b"


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="no points"):
        line_chart("t", Axis("x"), Axis("y"), [])
    with pytest.raises(ValueError, match="cannot show 0"):
        line_chart("t", Axis("x", log=True), Axis("y"), [Series("a", [0], [1])])
    with pytest.raises(ValueError, match="cannot show nan"):
        line_chart("t", Axis("x"), Axis("y"), [Series("a", [1], [float("nan")])])
