"""A small SVG writer: line charts that stand alone, scale, and follow the reader's light or dark theme.

Every string from outside is escaped. No script, no remote asset.
"""

import math
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from lexical_sae.utils.errors import DataError


@dataclass(frozen=True)
class Picture:
    """A drawing, its name, and what it shows for screen readers."""

    title: str
    svg: str
    description: str

    @property
    def address(self) -> str:
        """The drawing as a `data:` address: an image cannot run anything, and its styles stay its own."""
        return "data:image/svg+xml;base64," + b64encode(self.svg.encode("utf-8", "replace")).decode("ascii")


WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, BOTTOM = 56, 20, 48
TITLE = 20
"""Where the title's line stands."""
LEGEND, SAMPLE, LETTER = 18, 36, 7.0
"""Height of the legend's rows, room for the piece of line before a name, and for each of its letters."""
COLOURS = ("#3366cc", "#d9480f", "#2b8a3e", "#9c36b5", "#b08900", "#0b7285", "#c2255c", "#495057")
ON_DARK = ("#8fb0ff", "#ff9d66", "#69db7c", "#da77f2", "#ffd43b", "#3bc9db", "#f783ac", "#adb5bd")
DASHES = ("", "6 3", "2 3", "8 3 2 3")
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#222}.title{font-size:14px;font-weight:600}"
    ".axis,.guide{stroke:#888;stroke-width:1}.guide{fill:none}.grid{stroke:#ccc;stroke-width:.5}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.grid{stroke:#444}}"
)
LINES = (
    "".join(f".line{i}{{color:{colour}}}" for i, colour in enumerate(COLOURS))
    + "@media(prefers-color-scheme:dark){"
    + "".join(f".line{i}{{color:{colour}}}" for i, colour in enumerate(ON_DARK))
    + "}"
)


@dataclass(frozen=True)
class Canvas:
    """The frame of every drawing: a scalable `<svg>` with its name, what it shows in words, and its look."""

    title: str
    width: int
    height: int
    description: str = ""
    look: str = STYLE + LINES
    ids: str = ""
    """Prefix of the ids by which the drawing names itself, for drawings that may stand in a page."""

    def svg(self, parts: Sequence[str]) -> str:
        """The drawing as one `<svg>` element that stands alone."""
        labelled = f' aria-labelledby="{self.ids}-title {self.ids}-desc"' if self.ids else ""
        name, told = (f' id="{self.ids}-{part}"' if self.ids else "" for part in ("title", "desc"))
        head = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" role="img"{labelled}>',
            f"<title{name}>{xml_text(self.title)}</title>",
            *([f"<desc{told}>{xml_text(self.description)}</desc>"] if self.description else []),
            f"<style>{self.look}</style>",
        ]
        return "\n".join([*head, *parts, "</svg>"]) + "\n"

    def heading(self, x: int, text: str = "") -> str:
        """The title's line, from `x` on; `text` where the name is too long for it."""
        return f'<text class="title" x="{x}" y="{TITLE}">{xml_text(text or self.title)}</text>'


@dataclass(frozen=True)
class Series:
    """One line of a chart."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    ends: Sequence[tuple[float, float] | None] = ()
    """From where to where each point may lie, drawn as an upright line; or none."""
    is_guide: bool = False
    """Whether it is there to compare with: grey and without markers."""


@dataclass(frozen=True)
class Axis:
    """What runs along a side of the chart."""

    label: str
    log: bool = False
    """Whether equal steps are equal factors; values must be positive then."""
    from_zero: bool = True
    """Whether positive values are shown with all the way from zero."""
    names: Sequence[str] = ()
    """What the values 0, 1, 2, … are called, such as months; as many are written as have room."""

    def tick_name(self, tick: float) -> str:
        """What is written at a tick."""
        return xml_text(self.names[int(tick)]) if self.names else short_number(tick)


def line_chart(
    title: str,
    x_axis: Axis,
    y_axis: Axis,
    series: Sequence[Series],
    *,
    width: int = WIDTH,
    height: int = HEIGHT,
    told: str = "",
) -> str:
    """A line chart with markers and a legend, as one `<svg>` element; `told` says in words what it shows.

    Lines differ in dashes as well as in colour. Letters keep their size in the drawing: a chart for small screens has a
    smaller `width`.
    """
    lines = [line for line in series if len(line.x)]
    if not lines:
        raise DataError(f"chart {title!r} has no points to draw")
    places = legend_places([line.name for line in lines], width - LEFT - RIGHT)
    top = TITLE + LEGEND * (places[-1][1] + 1) + (28 if y_axis.label else 16)
    across = _Scale(x_axis, [v for line in lines for v in line.x], LEFT, width - RIGHT)
    reached = [end for line in lines for ends in line.ends if ends is not None for end in ends]
    up = _Scale(y_axis, [*(v for line in lines for v in line.y), *reached], height - BOTTOM, top)
    canvas = Canvas(title, width, height, told)
    parts = [canvas.heading(LEFT), *_axes(across, up)]
    for number, (line, place) in enumerate(zip(lines, places, strict=True)):
        parts += _line(line, number, place, across, up)
    return canvas.svg(parts)


def legend_places(names: Sequence[str], width: float) -> list[tuple[float, int]]:
    """Where each name of a legend begins and in which row, as many in a row as have room; one has always room.

    Example: two names of ten letters in 200 pixels -> `[(0.0, 0), (0.0, 1)]`
    """
    places: list[tuple[float, int]] = []
    at, row = 0.0, 0
    for name in names:
        needed = SAMPLE + LETTER * len(name)
        if at and at + needed > width:
            at, row = 0.0, row + 1
        places.append((at, row))
        at += needed
    return places


class _Scale:
    """Values to pixels along one axis, with readable ticks."""

    def __init__(self, axis: Axis, values: Sequence[float], start: float, end: float) -> None:
        bad = [v for v in values if not math.isfinite(v) or (axis.log and v <= 0)]
        if bad:
            raise DataError(f"axis {axis.label!r} cannot show {bad[0]!r}")
        self.axis, self.start, self.end = axis, start, end
        self.ticks = self._ticks(values)
        low, high = min(*values, self.ticks[0]), max(*values, self.ticks[-1])
        self.low, self.span = self._place(low), (self._place(high) - self._place(low)) or 1.0

    def _ticks(self, values: Sequence[float]) -> list[float]:
        if self.axis.names:
            return _named_ticks(self.axis.names, abs(self.end - self.start))
        return _log_ticks(values) if self.axis.log else _linear_ticks(values, from_zero=self.axis.from_zero)

    def _place(self, value: float) -> float:
        return math.log10(value) if self.axis.log else value

    def __call__(self, value: float) -> float:
        share = (self._place(value) - self.low) / self.span
        return round(self.start + (self.end - self.start) * share, 1)


def _linear_ticks(values: Sequence[float], *, from_zero: bool) -> list[float]:
    """About five round numbers that cover the values, from zero when they are all positive and that is wanted."""
    low, high = min(*values, 0.0 if from_zero else values[0]), max(values)
    rough = (high - low or 1.0) / 4
    power = 10 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough)
    first = math.floor(low / step)
    return [(first + i) * step for i in range(math.ceil(high / step) - first + 1)]


def _named_ticks(names: Sequence[str], room: float) -> list[float]:
    """Every first, second, … of the names, so that they do not touch."""
    needed = LETTER * (max(map(len, names)) + 1)
    every = next(n for n in range(1, len(names) + 1) if n == len(names) or needed * len(names[::n]) <= room)
    return [float(place) for place in range(0, len(names), every)]


def _log_ticks(values: Sequence[float]) -> list[float]:
    """Powers of ten, or of two where the values span less than two decades."""
    low, high = min(values), max(values)
    base = 10 if high / low >= 100 else 2
    first, last = math.floor(math.log(low, base) + 1e-9), math.ceil(math.log(high, base) - 1e-9)
    return [float(base) ** power for power in range(first, max(last, first + 1) + 1)]


def _axes(across: _Scale, up: _Scale) -> list[str]:
    left, right, bottom, top = across.start, across.end, up.start, up.end
    parts = [f'<path class="axis" fill="none" d="M{left} {top}V{bottom}H{right}"/>']
    for tick in up.ticks:
        y = up(tick)
        parts.append(f'<path class="grid" d="M{left} {y}H{right}"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4}" text-anchor="end">{up.axis.tick_name(tick)}</text>')
    for tick in across.ticks:
        parts.append(
            f'<text x="{across(tick)}" y="{bottom + 16}" text-anchor="middle">{across.axis.tick_name(tick)}</text>'
        )
    parts.append(
        f'<text x="{(left + right) / 2}" y="{bottom + 40}" text-anchor="middle">{xml_text(across.axis.label)}</text>'
    )
    parts.append(f'<text x="{left}" y="{top - 8}">{xml_text(up.axis.label)}</text>')
    return parts


def _line(line: Series, number: int, place: tuple[float, int], across: _Scale, up: _Scale) -> list[str]:
    look = "beside" if line.is_guide else f"line{number % len(COLOURS)}"
    # Lines of one colour, eight apart, differ in dashes too.
    dash = "2 3" if line.is_guide else DASHES[(number + number // len(COLOURS)) % len(DASHES)]
    points = sorted((across(x), up(y)) for x, y in zip(line.x, line.y, strict=True))
    path = " ".join(f"{x},{y}" for x, y in points)
    x, y = LEFT + place[0], TITLE + LEGEND * (place[1] + 1)
    stroke = 'class="guide"' if line.is_guide else 'stroke="currentColor" stroke-width="2"'
    drawn = f'{stroke} stroke-dasharray="{dash}"'
    name = xml_text(line.name)
    markers = [] if line.is_guide else points
    return [
        f'<g class="{look}">',
        f'<polyline fill="none" {drawn} points="{path}"/>',
        *(
            f'<path stroke="currentColor" d="M{across(at)} {up(ends[0])}V{up(ends[1])}"/>'
            for at, ends in zip(line.x, line.ends, strict=bool(line.ends))
            if ends is not None
        ),
        *(f'<circle cx="{a}" cy="{b}" r="3" fill="currentColor"><title>{name}</title></circle>' for a, b in markers),
        f'<path {drawn} d="M{x} {y}h18"/>',
        f'<text x="{x + 24}" y="{y + 4}">{name}</text>',
        "</g>",
    ]


def short_number(value: float) -> str:
    """A number as axes show it: whole, or with three digits."""
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}"
    return f"{value:.3g}"


def xml_text(value: str) -> str:
    """Text as XML content: markup escaped, characters that XML forbids replaced."""
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in value)
    return escape(clean)


@dataclass(frozen=True)
class Ruler:
    """Values to pixels along one side of a panel, with readable ticks."""

    low: float
    high: float
    start: float
    """Pixel of the low end."""
    end: float
    ticks: Sequence[float]
    place: Callable[[float], float] = float
    """What is even along the ruler: the value itself, or say its logarithm."""

    def __call__(self, value: float) -> float:
        low, high = self.place(self.low), self.place(self.high)
        share = (self.place(value) - low) / (high - low)
        return round(self.start + (self.end - self.start) * share, 1)


def word_ruler(values: Sequence[float], start: float, end: float) -> Ruler:
    """A ruler for numbers of words: equal steps are nearly equal factors, and zero has a place too."""
    low, high = 0.98 * min(values), 1.02 * max(values) + 1
    powers = [10.0**power for power in range(6)]
    inside = [[m * p for p in powers for m in steps if low <= m * p <= high] for steps in ((1, 2, 5), (1,))]
    ticks = next((found for found in inside if 3 <= len(found) <= 7), None) or _ticks_inside(low, high)
    return Ruler(low, high, start, end, ticks, math.log1p)


def share_ruler(values: Sequence[float], start: float, end: float) -> Ruler:
    """A ruler for shares, no more of the way from 0 to 1 than they need."""
    low, high = max(0.0, min(values) - 0.005), min(1.0, max(values) + 0.005)
    step = _round_step(low, high)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = [round(step * i, 9) for i in range(first, last + 1)]
    return Ruler(ticks[0], ticks[-1], start, end, ticks)


def _round_step(low: float, high: float, most: int = 5) -> float:
    """The smallest round step that takes at most `most` steps from low to high. Example: 78 to 85 -> 2"""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-9))


def _ticks_inside(low: float, high: float) -> list[float]:
    step = _round_step(low, high)
    return [round(step * i, 9) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def spread(wanted: Sequence[float], sizes: Sequence[float], low: float, high: float) -> list[float]:
    """Centres of things that do not overlap, in the order and near the places they are wanted at.

    They lie between `low` and `high` if all of them together have room there.

    Example: wanted at 5 and 6, each 4 long, between 0 and 20 -> 5 and 9
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed, edge = list(wanted), low
    for i in order:
        placed[i] = max(placed[i], edge + sizes[i] / 2)
        edge = placed[i] + sizes[i] / 2
    edge = high
    for i in reversed(order):
        placed[i] = min(placed[i], edge - sizes[i] / 2)
        edge = placed[i] - sizes[i] / 2
    return placed
