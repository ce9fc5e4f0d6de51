"""A classifier as a piece of HTML for notebooks: its strongest words for each class, as a page of the explorer begins.

Styles stand in the elements and colours are tints over whatever the notebook has behind them, as in `explanation.html`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from lexical_sae.report.explanation.html import FOR
from lexical_sae.report.html_templates import templates

MOST_CLASSES = 12
"""Classes that a cell shows; the rest are counted."""


class ClassWord(NamedTuple):
    """A word with its weight for a class."""

    name: str
    weight: float
    texts: int | None
    """Training texts with the word, if known."""


def classifier_html(title: str, classes: Sequence[tuple[str, Sequence[ClassWord]]], words: int) -> str:
    """The strongest words of each class.

    Args:
        title: What the classifier is.
        classes: Per label its words, the strongest first.
        words: How many words have a weight.
    """
    heaviest = max((word.weight for _, own in classes for word in own), default=0.0) or 1.0
    shown = {"classes": classes[:MOST_CLASSES], "more": max(0, len(classes) - MOST_CLASSES), "colour": FOR}
    template = templates().get_template("classifier.html.j2")
    return template.render(title=title, words=words, heaviest=heaviest, **shown)
