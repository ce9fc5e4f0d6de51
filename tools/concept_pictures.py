"""The pictures of docs/concepts.md: `make pictures`, with a classifier of the invented reviews in examples/."""

from pathlib import Path

import pandas as pd

from lexical_sae import Explanation, LexicalClassifier
from lexical_sae.models.layers.context_shift import ContextShift
from lexical_sae.report.charts.svg import COLOURS, STYLE, Axis, Canvas, Series, line_chart, xml_text
from lexical_sae.report.charts.waterfall import waterfall

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "pictures"
TEXT = "a warm and funny film, but the ending is flat"
REMOVED = "funny"

EXACT, PARTLY, NOT = "exact", "by construction", "not explained"
BOXES = (
    ("text", EXACT, "as it is written"),
    ("words", PARTLY, "a feature each, no others"),
    ("table", EXACT, "a weight per class, in any text"),
    ("a few shifts", NOT, "by the encoder: counted, tested"),
    ("sum", EXACT, "contributions + bias"),
    ("label", EXACT, "the largest logit"),
)
WIDTH, HEIGHT, GAP = 440, 34, 14
LOOK = (
    f"{STYLE}.paper{{fill:#fff}}rect{{fill:none;stroke-width:2}}.kind0{{stroke:{COLOURS[0]}}}.kind1{{stroke:{COLOURS[2]}}}"
    f".kind2{{stroke:{COLOURS[1]};stroke-dasharray:6 3}}.link{{stroke:#888}}.name{{font-weight:600}}"
    "@media(prefers-color-scheme:dark){.paper{fill:#161616}.kind0{stroke:#8fb0ff}.kind1{stroke:#69db7c}.kind2{stroke:#ff9d66}}"
)


def path() -> str:
    """From text to label, with what can be said of each step."""
    told = "; ".join(f"{name}: {kind}, {more}" for name, kind, more in BOXES)
    height = 36 + len(BOXES) * (HEIGHT + GAP)
    canvas = Canvas("From text to label", WIDTH, height, told, LOOK)
    parts = [f'<rect class="paper" width="{WIDTH}" height="{height}"/>', canvas.heading(8)]
    for row, (name, kind, more) in enumerate(BOXES):
        y, number = 34 + row * (HEIGHT + GAP), (EXACT, PARTLY, NOT).index(kind)
        parts += [
            f'<rect class="kind{number}" x="8" y="{y}" width="118" height="{HEIGHT}" rx="6"/>',
            f'<text class="name" x="67" y="{y + 21}" text-anchor="middle">{xml_text(name)}</text>',
            f'<text x="142" y="{y + 21}"><tspan class="name">{xml_text(kind)}</tspan> · {xml_text(more)}</text>',
        ]
        if row:
            parts.append(f'<path class="link" d="M67 {y - GAP}v{GAP}"/>')
    return canvas.svg(parts)


def shift() -> str:
    """How much context adds to a word, by how much the encoder would: the dead zone."""
    least = ContextShift.Config().least
    inside = least - 0.02  # the jump, a line that leans by a pixel
    word = Series("a word with weight", [-2, -least, -inside, inside, least, 2], [-2, -least, 0, 0, least, 2])
    words = [word, Series("a neutral word", [-2, 2], [0, 0], is_guide=True)]
    title = f"Below {least:g} logits a shift is exactly zero"
    return line_chart(
        title,
        Axis("what the encoder would add, logits"),
        Axis("what it adds"),
        words,
        width=WIDTH,
        height=280,
        told=title,
    )


def decisions() -> tuple[Explanation, Explanation]:
    """The same text explained with all words, and without one."""
    frame = pd.read_csv(ROOT / "examples" / "reviews.csv")
    clf = LexicalClassifier(random_state=0).fit(frame["text"], frame["label"])
    return clf.explain(TEXT), clf.suppress([REMOVED]).explain(TEXT)


def main() -> None:
    whole, without = decisions()
    drawings = {"path": path(), "sum": waterfall(whole), "removed": waterfall(without), "shift": shift()}
    FOLDER.mkdir(exist_ok=True)
    for name, drawing in drawings.items():
        (FOLDER / f"{name}.svg").write_text(drawing.replace("<svg ", f'<svg width="{WIDTH}" ', 1))
        print(f"{name}.svg: {len(drawing) / 1000:.1f} kB")


if __name__ == "__main__":
    main()
