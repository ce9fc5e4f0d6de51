import io
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from lexical_sae.report.charts.frontier import (
    ACCURACY,
    HEIGHT,
    NAMES,
    WIDTH,
    Frontier,
    FrontierPoint,
    frontier_svg,
    frontier_table,
)
from lexical_sae.report.charts.svg import share_ruler, spread, word_ruler

SVG = "{http://www.w3.org/2000/svg}"
SHARES = st.floats(0, 1)


def point(value, words, accuracy, **changes) -> FrontierPoint:
    fields = {"accuracy_low": None, "accuracy_high": None, "delete": 0.9, "follow": 0.8, "function_words": 0.0}
    fields |= {"lexical_neighbours": 0.7, "seconds": 90.0, "texts": 100, "folder": f"words-{value}", **changes}
    return FrontierPoint(value=value, active_words=words, accuracy=accuracy, **fields)


FRONTIER = Frontier(
    "reviews",
    "training.active_target",
    (point(20, 18.4, 0.779), point(40, 35.2, 0.798), point(100, 93.1, 0.811, delete=0.7, follow=0.6)),
    {"TF-IDF": 0.811, "dense baseline": 0.849},
)


ROWS = st.lists(
    st.tuples(
        st.integers(1, 10_000), st.floats(0, 30_000), SHARES, st.booleans(), st.none() | SHARES, st.none() | SHARES
    ),
    min_size=1,
    max_size=24,
)
YARDSTICKS = st.dictionaries(st.sampled_from(["TF-IDF", "dense baseline"]), SHARES)


def frontier_of(rows, baselines) -> Frontier:
    points = []
    for value, words, accuracy, has_interval, delete, follow in rows:
        ends = {"accuracy_low": accuracy - 0.3, "accuracy_high": accuracy + 0.3} if has_interval else {}
        points.append(point(value, words, accuracy, delete=delete, follow=follow, **ends))
    return Frontier("reviews", "training.active_target", tuple(points), baselines)


def root_of(frontier):
    return ElementTree.fromstring(frontier_svg(frontier))


def lines(root) -> list[list[tuple[float, ...]]]:
    found = [line.get("points").split() for line in root.iter(f"{SVG}polyline")]
    return [[tuple(map(float, place.split(","))) for place in places] for places in found]


def texts(root) -> dict[str, ElementTree.Element]:
    return {element.text: element for element in root.iter(f"{SVG}text")}


def boxes(root) -> list[tuple[str, float, float, float, float]]:
    """About where each text lies: what it says, left, right, top, bottom."""
    found = []
    for element in root.iter(f"{SVG}text"):
        x, y, width = float(element.get("x")), float(element.get("y")), 6.6 * len(element.text)
        left = x - {"end": width, "middle": width / 2}.get(element.get("text-anchor"), 0)
        found.append((element.text, left, left + width, y - 10, y + 3))
    return found


@given(ROWS, YARDSTICKS)
def test_no_label_lies_on_another_or_outside_the_picture(rows, baselines):
    placed = boxes(root_of(frontier_of(rows, baselines)))
    for i, (text, left, right, top, bottom) in enumerate(placed):
        assert left >= 0, text
        assert right <= WIDTH, text
        assert bottom <= HEIGHT, text
        for other, left2, right2, top2, bottom2 in placed[:i]:
            assert right <= left2 or right2 <= left or bottom <= top2 or bottom2 <= top, (text, other)


@given(ROWS, YARDSTICKS)
def test_every_point_lies_inside_its_panel(rows, baselines):
    accuracy, *names = lines(root_of(frontier_of(rows, baselines)))
    assert len(accuracy) == len(rows)
    for drawn, (top, bottom) in [(accuracy, ACCURACY), *((line, NAMES) for line in names)]:
        assert all(0 < x < WIDTH and top <= y <= bottom for x, y in drawn)


def test_points_run_by_active_words_and_better_is_higher():
    shuffled = replace(FRONTIER, points=FRONTIER.points[::-1])
    accuracy, delete, follow = lines(root_of(shuffled))
    assert accuracy == sorted(accuracy)
    assert [y for _, y in accuracy] == sorted((y for _, y in accuracy), reverse=True)
    assert [x for x, _ in accuracy] == [x for x, _ in delete] == [x for x, _ in follow]
    assert all(d < f for (_, d), (_, f) in zip(delete, follow, strict=True))


def test_yardsticks_are_lines_with_their_names_and_figures():
    root = root_of(FRONTIER)
    found = [path for path in root.iter(f"{SVG}path") if path.get("class") == "baseline"]
    assert len(found) == 2
    heights = [float(re.match(r"M\d+ ([\d.]+)H", path.get("d")).group(1)) for path in found]
    accuracy = lines(root)[0]
    assert heights[0] == accuracy[-1][1], "TF-IDF is as good as the last point"
    assert heights[1] < heights[0], "the dense baseline is better"
    assert {"TF-IDF", "81.1%", "dense baseline", "84.9%"} <= set(texts(root))
    assert len({path.get("stroke-dasharray") for path in found}) == 2
    without = root_of(replace(FRONTIER, baselines={}))
    assert all(path.get("class") != "baseline" for path in without.iter(f"{SVG}path"))


def test_delete_and_follow_differ_by_more_than_colour():
    _, delete, follow = root_of(FRONTIER).iter(f"{SVG}polyline")
    assert delete.get("stroke-dasharray") != follow.get("stroke-dasharray")
    assert delete.get("class") != follow.get("class")


def test_a_screen_reader_hears_every_point_and_yardstick():
    root = root_of(FRONTIER)
    named = root.get("aria-labelledby").split()
    title, desc = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert [title.get("id"), desc.get("id")] == named
    assert "training.active_target 20: 18.4 active words, accuracy 77.9%" in desc.text
    assert "deletion test 70.0%, substitution test 60.0%" in desc.text
    assert "dense baseline: accuracy 84.9%" in desc.text


def test_intervals_are_drawn_and_stay_shares():
    plain = frontier_svg(FRONTIER)
    wide = replace(FRONTIER.points[0], accuracy_low=-0.5, accuracy_high=1.5)
    root = root_of(replace(FRONTIER, points=(wide,)))
    (bar,) = [path.get("d") for path in root.iter(f"{SVG}path") if path.get("class") == "first line"]
    low, high = map(float, re.match(r"M[\d.]+ ([\d.]+)V([\d.]+)", bar).groups())
    assert (low, high) == (ACCURACY[1], ACCURACY[0])
    assert 'class="first line" d=' not in plain


def test_what_was_not_measured_is_left_out():
    first, *rest = FRONTIER.points
    _, delete, follow = lines(root_of(replace(FRONTIER, points=(replace(first, delete=None), *rest))))
    assert (len(delete), len(follow)) == (2, 3)


def test_too_many_values_are_thinned_and_each_kept_one_has_its_guide():
    crowd = Frontier("reviews", "k", tuple(point(10_000 + i, 10.0 + i, 0.5 + i / 200) for i in range(60)), {})
    root = root_of(crowd)
    shown = [text for text in texts(root) if text.startswith("100")]
    assert 5 <= len(shown) < 60
    assert len([p for p in root.iter(f"{SVG}path") if p.get("class") == "guide"]) == len(shown) + len(lines(root))


@pytest.mark.parametrize("nasty", ["<script>alert(1)</script>", '"onload="x', "a & b", "\x00\x1b[31m", "]]>"])
def test_names_from_outside_cannot_become_markup(nasty):
    root = root_of(replace(FRONTIER, experiment=nasty, key=nasty, baselines={nasty: 0.5}))
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert tags <= {"svg", "title", "desc", "style", "rect", "text", "path", "polyline"}
    assert all(not name.startswith("on") for element in root.iter() for name in element.attrib)


def test_a_frontier_without_points_is_refused():
    with pytest.raises(ValueError, match="no points"):
        frontier_svg(replace(FRONTIER, points=()))


def test_table_has_a_row_per_point_and_yardstick():
    first, *rest = FRONTIER.points
    context = {"context_free": 0.758, "leakage": 0.149, "shifts": 12.14, "independence": 0.73}
    context |= {"negated_positive": 0.77, "negated_negative": 0.06}
    first = replace(first, accuracy_low=0.75, accuracy_high=0.8, follow=None, **context)
    frontier = replace(FRONTIER, points=(first, *rest))
    console = Console(file=io.StringIO(), width=240)
    console.print(frontier_table(frontier))
    rows = console.file.getvalue().splitlines()
    (twenty,) = [row for row in rows if row.startswith("20 ")]
    assert re.split(" {2,}", twenty.strip()) == [
        *("20", "77.9% (75.0% to 80.0%)", "75.8%", "14.9", "12.1", "77% / 6%", "0.73"),
        *("90.0%", "–", "18.4", "0.0%", "70.0%", "1.5"),
    ]
    assert [row for row in rows if "dense baseline" in row and "84.9%" in row]


@given(st.lists(st.tuples(st.floats(-50, 550), st.floats(1, 30)), min_size=1, max_size=16))
def test_spread_things_keep_their_order_and_do_not_overlap(things):
    wanted, sizes = zip(*things, strict=True)
    placed = spread(wanted, sizes, 0, 500)
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    edges = [(placed[i] - sizes[i] / 2, placed[i] + sizes[i] / 2) for i in order]
    assert edges[0][0] >= -1e-6
    assert edges[-1][1] <= 500 + 1e-6
    assert all(end <= start + 1e-6 for (_, end), (start, _) in zip(edges, edges[1:], strict=False))


def test_spread_leaves_alone_what_does_not_touch():
    assert spread([5, 30, 17], [4, 4, 4], 0, 40) == [5, 30, 17]
    assert spread([5, 6], [4, 4], 0, 20) == [5, 9]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_share_ruler_covers_the_values_with_few_round_ticks(values):
    ruler = share_ruler(values, 100, 0)
    assert ruler.low <= min(values)
    assert max(values) <= ruler.high
    assert 2 <= len(ruler.ticks) <= 7
    assert 0 <= ruler.low < ruler.high <= 1


def test_share_ruler_does_not_start_at_zero_when_values_are_close():
    assert share_ruler([0.78, 0.85], 100, 0).ticks == pytest.approx([0.76, 0.78, 0.8, 0.82, 0.84, 0.86])


def test_word_ruler_steps_by_factors_and_has_a_place_for_none():
    ruler = word_ruler([9.0, 900.0], 0, 100)
    assert ruler.ticks == [10, 20, 50, 100, 200, 500]
    assert ruler(500) - ruler(50) == pytest.approx(ruler(90) - ruler(9), abs=3)
    assert word_ruler([0.0], 0, 100)(0.0) == 0
