"""A waterfall: word after word, each bar begins where the one before ended, and the last is the decision."""

from lexical_sae.explanation import Explanation
from lexical_sae.report.charts.svg import COLOURS, STYLE, Canvas, xml_text
from lexical_sae.report.explanation.steps import Sum, listing, question
from lexical_sae.report.printable import shown

WIDTH, NAMES, RIGHT = 440, 172, 50
"""Small, so that letters can be read on a phone without scrolling."""
TOP, ROW, BAR = 44, 22, 14
LONGEST = 26
"""Letters of a name that have room."""
LOOK = (
    f"{STYLE}.paper{{fill:#fff}}.for{{fill:{COLOURS[0]}}}.against{{fill:none;stroke:{COLOURS[1]};stroke-width:2}}"
    ".sum{fill:#555}.link{stroke:#888;stroke-dasharray:2 3}"
    "@media(prefers-color-scheme:dark){.paper{fill:#161616}.for{fill:#8fb0ff}.against{stroke:#ff9d66}.sum{fill:#bbb}}"
)


class Svg(str):
    """An `<svg>` element that notebooks show as a picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


def waterfall(explanation: Explanation, top: int = 12) -> Svg:
    """The strongest words, the others by side and the bias, each from where the last ended; then the decision.

    Bars that go up are filled and bars that go down are outlines, so nothing hangs on colour.
    """
    listed = listing(explanation, top)
    steps = [*(Sum(word.word, word.contribution) for word in listed.words), *listed.rest]
    levels = [0.0]
    for step in steps:
        levels.append(levels[-1] + step.amount)
    low, high = min(levels), max(levels)
    scale = (WIDTH - NAMES - RIGHT) / ((high - low) or 1.0)

    def x(level: float) -> float:
        return round(NAMES + (level - low) * scale, 1)

    height = TOP + ROW * (len(steps) + 1) + 12
    title = f"{explanation.headline}: words {question(explanation)}"
    canvas = Canvas(_cut(title, 200), WIDTH, height, _described(steps, explanation), LOOK)
    parts = [
        f'<rect class="paper" width="{WIDTH}" height="{height}"/>',
        canvas.heading(8, _cut(title, 56)),
        f'<path class="axis" d="M{x(0.0)} {TOP - 8}V{height - 8}"/>',
    ]
    for row, step in enumerate(steps):
        kind = "for" if step.amount > 0 else "against"
        parts += _bar(row, step, x(levels[row]), x(levels[row + 1]), kind)
        parts.append(f'<path class="link" d="M{x(levels[row + 1])} {_y(row) + BAR}v{ROW - BAR}"/>')
    parts += _bar(len(steps), Sum("decision", explanation.explained), x(0.0), x(levels[-1]), "sum")
    return Svg(canvas.svg(parts))


def _y(row: int) -> int:
    return TOP + ROW * row


def _bar(row: int, step: Sum, start: float, end: float, kind: str) -> list[str]:
    left, width = min(start, end), max(abs(end - start), 0.5)
    base = _y(row) + BAR - 3
    return [
        f'<text x="{NAMES - 10}" y="{base}" text-anchor="end">{_name(step.name, LONGEST)}</text>',
        f'<rect class="{kind}" x="{left}" y="{_y(row)}" width="{round(width, 1)}" height="{BAR}"/>',
        f'<text x="{round(left + width + 6, 1)}" y="{base}">{step.amount:+.2f}</text>',
    ]


def _name(name: str, longest: int) -> str:
    return xml_text(_cut(name, longest))


def _cut(name: str, longest: int) -> str:
    clean = shown(name)
    return clean if len(clean) <= longest else f"{clean[: longest - 1]}…"


def _described(steps: list[Sum], explanation: Explanation) -> str:
    """The picture in words, for screen readers."""
    return ", ".join(f"{step.name} {step.amount:+.2f}" for step in steps) + f"; together {explanation.explained:+.2f}"
