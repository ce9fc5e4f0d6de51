"""How well each probe still reads a concept, removal by removal: dots with intervals beside the floor of guessing."""

from collections.abc import Mapping, Sequence
from typing import Any

from lexical_sae.report.charts.svg import COLOURS, Canvas, xml_text

WIDTH, LEFT, RIGHT, TOP = 640, 140, 24, 64
ROW, STEP = 46, 12
"""Height of a representation's rows, and between the probes in it."""
LEAST = 0.3
"""Accuracy at the left edge; guessing is right half of the time."""
MARKS = ("M{x} {y}m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", "M{x} {y}m-4 -4h8v8h-8z", "M{x} {y}m0 -5l5 5l-5 5l-5 -5z")


def leakage_svg(found: Mapping[str, Any]) -> str:
    """The scores of `probe_figures` as one `<svg>` element; probes are told apart by shape, not by colour alone."""
    scores: Mapping[str, Sequence[Mapping[str, Any]]] = found["scores"]
    probes = list(dict.fromkeys(score["probe"] for some in scores.values() for score in some))
    bottom = TOP + ROW * len(scores)
    floor = _across(found["majority"])
    title = "How well probes still read the concept"
    canvas = Canvas(title, WIDTH, bottom + 40, leakage_sentence(found))
    parts = [
        canvas.heading(8),
        *(_key(number, probe) for number, probe in enumerate(probes)),
        f'<path class="axis" stroke-dasharray="4 3" d="M{floor} {TOP - 8}V{bottom}"/>',
        f'<text x="{floor}" y="{bottom + 32}" text-anchor="middle">guessing</text>',
    ]
    for tick in range(4, 11, 2):
        x = _across(tick / 10)
        parts.append(f'<path class="grid" d="M{x} {TOP - 8}V{bottom}"/>')
        parts.append(f'<text x="{x}" y="{bottom + 16}" text-anchor="middle">{10 * tick}%</text>')
    for row, (name, some) in enumerate(scores.items()):
        y = TOP + ROW * row
        parts.append(f'<text x="{LEFT - 12}" y="{y + STEP + 8}" text-anchor="end">{xml_text(name)}</text>')
        parts += [_dot(score, probes.index(score["probe"]), y + 4 + STEP * i) for i, score in enumerate(some)]
    return canvas.svg(parts)


def leakage_sentence(found: Mapping[str, Any]) -> str:
    """The picture in words, for screen readers."""
    rows = [
        f"{name}: " + ", ".join(f"{score['probe']} {score['accuracy']:.1%}" for score in some) + "."
        for name, some in found["scores"].items()
    ]
    return " ".join([*rows, f"Guessing: {found['majority']:.1%}."])


def _across(accuracy: float) -> float:
    share = (max(accuracy, LEAST) - LEAST) / (1 - LEAST)
    return round(LEFT + (WIDTH - LEFT - RIGHT) * share, 1)


def _dot(score: Mapping[str, Any], number: int, y: float) -> str:
    low, high, x = (_across(score[key]) for key in ("low", "high", "accuracy"))
    told = xml_text(f"{score['probe']}: {score['accuracy']:.1%} ({score['low']:.1%} to {score['high']:.1%})")
    return (
        f'<g class="line{number % len(COLOURS)}"><title>{told}</title>'
        f'<path stroke="currentColor" stroke-width="1.5" d="M{low} {y}H{high}"/>'
        f'<path fill="currentColor" d="{_mark(number, x, y)}"/></g>'
    )


def _key(number: int, probe: str) -> str:
    x = LEFT + 170 * number
    return (
        f'<g class="line{number % len(COLOURS)}"><path fill="currentColor" d="{_mark(number, x, 40)}"/></g>'
        f'<text x="{x + 10}" y="44">{xml_text(probe)}</text>'
    )


def _mark(number: int, x: float, y: float) -> str:
    return MARKS[number % len(MARKS)].format(x=x, y=y)
