"""A reliability diagram: how often decisions of each confidence are right, beside the diagonal, and their number."""

from collections.abc import Sequence

from lexical_sae.evaluation.metrics.calibration import ReliabilityBin
from lexical_sae.report.charts.svg import LINES, STYLE, Canvas, Ruler, share_ruler, xml_text
from lexical_sae.report.interval_text import share_text
from lexical_sae.utils.errors import DataError

Bins = Sequence[ReliabilityBin]
WIDTH, LEFT, RIGHT = 420, 56, 20
ACCURACY, COUNTS = (52, 236), (272, 312)
"""Top and bottom of the two panels."""
HEIGHT = COUNTS[1] + 44
TITLE = "Reliability: accuracy at each confidence"
LOOK = f"{STYLE}{LINES}.count{{font-size:10px}}.bar{{fill:currentColor;fill-opacity:.5;stroke:currentColor}}"


def reliability_svg(bins: Bins) -> str:
    """The `curve` of a calibration as one `<svg>` element: points with intervals above, texts of each bin beneath."""
    if not bins:
        raise DataError("the reliability diagram has no bins to draw: no text was decided on")
    edges = [edge for one in bins for edge in (one.low, one.high)]
    across = share_ruler([*edges, 1.0], LEFT, WIDTH - RIGHT)
    reached = [
        value
        for accuracy in (one.accuracy for one in bins)
        for value in (accuracy.low, accuracy.mean, accuracy.high)
        if value is not None
    ]
    up = share_ruler([*reached, across.low, across.high], ACCURACY[1], ACCURACY[0])
    canvas = Canvas(TITLE, WIDTH, HEIGHT, reliability_sentence(bins), LOOK)
    parts = [
        canvas.heading(LEFT),
        f'<text x="{LEFT}" y="{ACCURACY[0] - 10}">% right (95 % CI); dotted: perfectly calibrated</text>',
        *_frame(across, up),
        '<g class="line0">',
        *(_point(one, across, up) for one in bins),
        *_bars(bins, across),
        "</g>",
    ]
    return canvas.svg(parts)


def reliability_sentence(bins: Bins) -> str:
    """The picture in words, for screen readers."""
    return "; ".join(_described(one) for one in bins)


def _described(one: ReliabilityBin) -> str:
    return f"confidence {one.confidence:.1%}: right {share_text(one.accuracy)} of {one.texts:,} texts"


def _frame(across: Ruler, up: Ruler) -> list[str]:
    """Axes and grid of both panels, and the diagonal."""
    parts = [f'<path class="axis" fill="none" d="M{LEFT} {a}V{b}H{WIDTH - RIGHT}"/>' for a, b in (ACCURACY, COUNTS)]
    diagonal = f"M{across(across.low)} {up(across.low)}L{across(across.high)} {up(across.high)}"
    parts.append(f'<path class="guide" stroke-dasharray="2 3" d="{diagonal}"/>')
    for tick in up.ticks:
        parts.append(f'<path class="grid" d="M{LEFT} {up(tick)}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{up(tick) + 4}" text-anchor="end">{tick:.0%}</text>')
    for tick in across.ticks:
        parts.append(f'<text x="{across(tick)}" y="{COUNTS[1] + 16}" text-anchor="middle">{tick:.0%}</text>')
    parts.append(f'<text x="{LEFT - 6}" y="{COUNTS[1]}" text-anchor="end">texts</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    return [*parts, f'<text x="{middle}" y="{COUNTS[1] + 36}" text-anchor="middle">confidence</text>']


def _point(one: ReliabilityBin, across: Ruler, up: Ruler) -> str:
    accuracy, x = one.accuracy, across(one.confidence)
    low, high = accuracy.low, accuracy.high
    ends = ""
    if low is not None and high is not None:
        ends = f'<path stroke="currentColor" d="M{x} {up(low)}V{up(high)}"/>'
    dot = f'<circle cx="{x}" cy="{up(accuracy.mean)}" r="4" fill="currentColor"/>'
    return f"<g><title>{xml_text(_described(one))}</title>{ends}{dot}</g>"


def _bars(bins: Bins, across: Ruler) -> list[str]:
    """A bar for the texts of each bin, its number on top."""
    top, bottom = COUNTS
    tallest = max(one.texts for one in bins)
    parts = []
    for one in bins:
        left, right = across(one.low), across(one.high)
        y = round(bottom - (bottom - top) * one.texts / tallest, 1)
        parts.append(
            f'<rect class="bar" x="{left}" y="{y}" width="{right - left:.1f}" height="{bottom - y:.1f}"/>'
            f'<text class="count" x="{(left + right) / 2:.1f}" y="{y - 3}" text-anchor="middle">'
            f"{_short(one.texts)}</text>"
        )
    return parts


def _short(count: int) -> str:
    """A count in four letters at most. Example: `872 -> "872"`, `1234 -> "1.2k"`, `56789 -> "57k"`"""
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 9950 else f"{count / 1000:.0f}k"
