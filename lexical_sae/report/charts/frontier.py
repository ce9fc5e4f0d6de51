"""The frontier of a sweep: a table, and a picture with accuracy above and name scores beneath.

Both panels of the picture run over active words, or over context shifts where those are swept. A guide
leads from each point's value, on top, through both.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Group

from lexical_sae.report.charts.svg import (
    COLOURS,
    DASHES,
    STYLE,
    Canvas,
    Ruler,
    share_ruler,
    short_number,
    spread,
    word_ruler,
    xml_text,
)
from lexical_sae.report.studies.run_figures import (
    CONTEXT_COLUMNS,
    RunFigures,
    context_cells,
    percent,
    percent_over_seeds,
)
from lexical_sae.report.tables import Cell, FigureTable, table_view
from lexical_sae.utils.errors import DataError

WIDTH, LEFT, RIGHT = 588, 64, 132
INSET = 16
"""Room between the frame and the outermost points."""
STRIP = 66
"""Where the points' values stand."""
ACCURACY, NAMES = (92, 292), (330, 460)
"""Top and bottom of the two panels."""
HEIGHT = NAMES[1] + 44
LETTER, LINE, GAP = 7.4, 15.0, 4.0
"""Width of a letter, height of a line, space between labels; rather too much than too little."""
LONGEST = 58
"""Letters of a heading that have room."""
LOOK = (
    f"{STYLE}text{{font-size:13px}}.title{{font-size:15px}}.paper{{fill:#fff}}"
    ".guide{stroke:#888;stroke-width:1;stroke-dasharray:1 4;fill:none}"
    ".baseline{stroke:#555;stroke-width:1.5;fill:none}"
    f".first{{stroke:{COLOURS[0]}}}.second{{stroke:{COLOURS[1]}}}"
    ".line{stroke-width:2;fill:none}.point{stroke-width:2;fill:#fff}"
    "@media(prefers-color-scheme:dark){.paper,.point{fill:#161616}.baseline{stroke:#bbb}"
    ".first{stroke:#8fb0ff}.second{stroke:#ff9d66}}"
)


SHIFTS = "allowed shifts"
"""What is swept of models with literal words: how many of a text's words context may shift on average."""


@dataclass(frozen=True, kw_only=True)
class FrontierPoint(RunFigures):
    """One value of the key that was swept, and what came of it."""

    value: int | float

    @property
    def value_text(self) -> str:
        return value_text(self.value)


def value_text(value: int | float) -> str:
    """A swept value as people and folders write it. Example: `inf -> unlimited`"""
    return "unlimited" if value == math.inf else str(value)


@dataclass(frozen=True)
class Axis:
    """What the picture runs over."""

    figure: str
    name: str

    def of(self, point: FrontierPoint) -> float:
        return getattr(point, self.figure)

    def said(self, point: FrontierPoint) -> str:
        """Example: `54.2 active words`"""
        return f"{self.of(point):.1f} {self.name}"


ACTIVE_WORDS, CONTEXT_SHIFTS = Axis("active_words", "active words"), Axis("shifts", "context shifts")


@dataclass(frozen=True)
class Frontier:
    """What a sweep found."""

    experiment: str
    key: str
    points: tuple[FrontierPoint, ...]
    baselines: Mapping[str, float]
    """Accuracy of the dense baseline and of TF-IDF, by name; empty if not measured."""

    @property
    def axis(self) -> Axis:
        return CONTEXT_SHIFTS if self.key == SHIFTS else ACTIVE_WORDS


def frontier_table(frontier: Frontier) -> Group:
    """A row per point, and one per baseline."""
    # Literal words are what the text says: as many at every point, and nothing opens near them.
    by_words = frontier.axis is ACTIVE_WORDS
    words_columns = ("active words", "function words", "lexical neighbours") if by_words else ()
    names = ("deletion test", "substitution test", *words_columns, "minutes")
    columns = (frontier.key, "accuracy", *CONTEXT_COLUMNS, *names)
    rows: list[tuple[str | Cell, ...]] = []
    for point in frontier.points:
        accuracy, *edits = (percent_over_seeds(point, name) for name in ("accuracy", "delete", "follow"))
        words = (f"{point.active_words:.1f}", percent(point.function_words), percent(point.lexical_neighbours))
        figures = (accuracy, *context_cells(point), *edits, *(words if by_words else ()))
        rows.append((point.value_text, *figures, f"{point.seconds / 60:.1f}"))
    rows += [
        (Cell(name, "quiet"), Cell(percent(accuracy), "quiet"), *("" for _ in columns[2:]))
        for name, accuracy in frontier.baselines.items()
    ]
    return table_view(FigureTable(f"Frontier of {frontier.experiment}", columns, rows))


def frontier_svg(frontier: Frontier) -> str:
    """The two panels as one `<svg>` element that stands alone and follows the reader's light or dark theme."""
    axis = frontier.axis
    points = sorted(frontier.points, key=axis.of)
    if not points:
        raise DataError("the frontier has no points to draw")
    across = word_ruler([axis.of(point) for point in points], LEFT + INSET, WIDTH - RIGHT - INSET)
    places = [(point, across(axis.of(point))) for point in points]
    title = f"{frontier.experiment}: accuracy, {axis.name} and names"
    canvas = Canvas(title, WIDTH, HEIGHT, describe(frontier), LOOK, ids="frontier")
    parts = [
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
        canvas.heading(4, _cut(title)),
        f'<text x="4" y="42">{xml_text(_cut(f"numbers on top: {frontier.key}"))}</text>',
        *_guides(places),
        *_accuracy_panel(places, frontier.baselines, axis),
        *_names_panel(places, axis),
        *_words_axis(across, axis),
    ]
    return canvas.svg(parts)


def describe(frontier: Frontier) -> str:
    """The picture in words, for screen readers."""
    points = [
        f"{frontier.key} {point.value_text}: {frontier.axis.said(point)}, accuracy {percent(point.accuracy)}, "
        f"deletion test {percent(point.delete)}, substitution test {percent(point.follow)}."
        for point in frontier.points
    ]
    return " ".join([*points, *(f"{name}: accuracy {percent(score)}." for name, score in frontier.baselines.items())])


def _cut(heading: str) -> str:
    return heading if len(heading) <= LONGEST else f"{heading[: LONGEST - 1]}…"


Places = Sequence[tuple[FrontierPoint, float]]
"""Points from left to right, each with its pixel."""


def _guides(places: Places) -> list[str]:
    """Each point's value on top, with a line down through both panels; every second only, or third, if too many."""
    sizes = [LETTER * (len(point.value_text) + 1) for point, _ in places]
    every = next(n for n in range(1, len(places) + 1) if n == len(places) or sum(sizes[::n]) <= WIDTH - INSET - LEFT)
    kept, sizes = places[::every], sizes[::every]
    parts = []
    for (point, x), label in zip(kept, spread([x for _, x in kept], sizes, LEFT, WIDTH - INSET), strict=True):
        parts.append(f'<path class="guide" d="M{label:.1f} {STRIP + 4}L{x} {ACCURACY[0]}V{NAMES[1]}"/>')
        parts.append(f'<text x="{label:.1f}" y="{STRIP}" text-anchor="middle">{point.value_text}</text>')
    return parts


def _accuracy_panel(places: Places, baselines: Mapping[str, float], axis: Axis) -> list[str]:
    bars = [
        (x, max(0.0, p.accuracy_low), min(1.0, p.accuracy_high))
        for p, x in places
        if p.accuracy_low is not None and p.accuracy_high is not None
    ]
    ends = [end for _, *pair in bars for end in pair]
    top, bottom = ACCURACY
    up = share_ruler([*(p.accuracy for p, _ in places), *baselines.values(), *ends], bottom, top)
    parts = _frame("accuracy", up, ACCURACY)
    for number, (name, score) in enumerate(baselines.items(), start=1):
        parts.append(
            f'<path class="baseline" stroke-dasharray="{DASHES[number % len(DASHES)]}" '
            f'd="M{LEFT} {up(score)}H{WIDTH - RIGHT}"><title>{xml_text(name)}: accuracy {percent(score)}</title></path>'
        )
    for x, low, high in bars:
        caps = f"M{x - 4:.1f} {up(low)}h8M{x - 4:.1f} {up(high)}h8"
        parts.append(f'<path class="first line" d="M{x} {up(low)}V{up(high)}{caps}"/>')
    parts += _series("accuracy", [(p, x, p.accuracy) for p, x in places], axis, up, FIRST)
    figures = {name: (score, percent(score)) for name, score in baselines.items()}
    return parts + _margin({"this model": (places[-1][0].accuracy, ""), **figures}, up, ACCURACY)


def _names_panel(places: Places, axis: Axis) -> list[str]:
    tests = {
        "deletion": [(p, x, p.delete) for p, x in places if p.delete is not None],
        "substitution": [(p, x, p.follow) for p, x in places if p.follow is not None],
    }
    top, bottom = NAMES
    up = share_ruler([score for found in tests.values() for *_, score in found] or [0.0, 1.0], bottom, top)
    parts = _frame("names", up, NAMES)
    for (name, found), look in zip(tests.items(), (FIRST, SECOND), strict=True):
        parts += _series(name, found, axis, up, look)
    return parts + _margin({name: (found[-1][2], "") for name, found in tests.items() if found}, up, NAMES)


def _frame(name: str, up: Ruler, panel: tuple[int, int]) -> list[str]:
    parts = [f'<text x="4" y="{panel[0] - 14}">{name}</text>']
    for tick in up.ticks:
        y = up(tick)
        parts.append(f'<path class="grid" d="M{LEFT} {y}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{short_number(round(100 * tick, 7))}%</text>')
    return [*parts, f'<path class="axis" fill="none" d="M{LEFT} {panel[0]}V{panel[1]}H{WIDTH - RIGHT}"/>']


@dataclass(frozen=True)
class _Look:
    """How a line is told from another without its colour: by its dashes and its markers."""

    style: str
    dash: str
    marker: Callable[[float, float], str]


FIRST = _Look("first", "", lambda x, y: f"M{x - 4.5:.1f} {y}a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z")
SECOND = _Look("second", "6 3", lambda x, y: f"M{x - 4:.1f} {y - 4:.1f}h8v8h-8z")


def _series(
    name: str, scores: Sequence[tuple[FrontierPoint, float, float]], axis: Axis, up: Ruler, look: _Look
) -> list[str]:
    """A line through points, given with their pixels and scores."""
    path = " ".join(f"{x},{up(score)}" for _, x, score in scores)
    parts = [f'<polyline class="{look.style} line" stroke-dasharray="{look.dash}" points="{path}"/>']
    for point, x, score in scores:
        said = f"{point.value_text}: {axis.said(point)}, {name} {percent(score)}"
        parts.append(f'<path class="{look.style} point" d="{look.marker(x, up(score))}"><title>{said}</title></path>')
    return parts


def _margin(named: Mapping[str, tuple[float, str]], up: Ruler, panel: tuple[int, int]) -> list[str]:
    """Names of lines beside their right ends, each with a figure beneath it if there is one to give."""
    ends = [up(score) for score, _ in named.values()]
    sizes = [LINE * (2 if figure else 1) + GAP for _, figure in named.values()]
    placed = spread(ends, sizes, panel[0] - LINE, panel[1] + LINE)
    x, parts = WIDTH - RIGHT, []
    for (name, (_, figure)), y, middle, size in zip(named.items(), ends, placed, sizes, strict=True):
        first = middle - (size - GAP) / 2 + 12
        parts.append(f'<path class="guide" d="M{x} {y}L{x + 12} {middle:.1f}"/>')
        parts.append(f'<text x="{x + 15}" y="{first:.1f}">{xml_text(name)}</text>')
        if figure:
            parts.append(f'<text x="{x + 15}" y="{first + LINE:.1f}">{figure}</text>')
    return parts


def _words_axis(across: Ruler, axis: Axis) -> list[str]:
    bottom, parts = NAMES[1], []
    for tick in across.ticks:
        x = across(tick)
        parts.append(f'<path class="axis" d="M{x} {bottom}v4"/>')
        parts.append(f'<text x="{x}" y="{bottom + 18}" text-anchor="middle">{short_number(tick)}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    return [*parts, f'<text x="{middle}" y="{bottom + 38}" text-anchor="middle">{axis.name} per text</text>']
