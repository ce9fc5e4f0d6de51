"""Explanations that can show themselves: one, and a list of them."""

import io
from collections.abc import Sequence
from typing import Any, SupportsIndex, overload

from rich.console import Console

from lexical_sae.explanation import Explanation
from lexical_sae.report.charts.waterfall import Svg, waterfall
from lexical_sae.report.explanation.html import explanation_html
from lexical_sae.report.explanation.terminal import explanation_panel
from lexical_sae.report.explanation.tidy import (
    CaptumRecord,
    captum_record,
    figure_of,
    frame_of,
    sentence,
    shap_explanation,
)

PRINTED_WIDTH = 100
SHOWN_IN_CELL = 20
"""Explanations of a list that a notebook cell shows; the rest are counted."""


class ShownExplanation(Explanation):
    """The same data with its views: `print(why)`, a cell of a notebook, `why.plot()`, `why.to_frame()`.

    `ShownExplanation.from_json(line)` reads one back.
    """

    def __str__(self) -> str:
        console = Console(file=io.StringIO(), width=PRINTED_WIDTH, color_system=None)
        with console.capture() as printed:
            console.print(explanation_panel(self))
        return printed.get()

    def _repr_html_(self) -> str:
        return explanation_html(self)

    def plot(self, top: int = 12) -> Any:
        """A waterfall of the strongest words that ends at the decision, which notebooks draw.

        A matplotlib figure where matplotlib is installed, else an SVG string (`svg` always gives that).
        """
        try:
            return figure_of(self, top)
        except ImportError:
            return self.svg(top)

    def svg(self, top: int = 12) -> Svg:
        """The same waterfall as an SVG string."""
        return waterfall(self, top)

    def sentence(self) -> str:
        """One sentence that names the decision, the words that contributed most, and the rest (`tidy.sentence`)."""
        return sentence(self)

    def to_shap(self) -> Any:
        """A `shap.Explanation` of this text."""
        return shap_explanation([self])

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each active word, the top-attributed first (`tidy.frame_of`)."""
        return frame_of([self])

    def to_captum(self, truth: object = "") -> CaptumRecord:
        """Words and values as captum's `visualize_text` takes them (`tidy.captum_record`); captum is not needed.

        Args:
            truth: The right label, if it is known, to show beside the one decided on.
        """
        return captum_record(self, truth)


class ShownExplanations(list[ShownExplanation]):
    """A list of explanations that a notebook shows as HTML and `print` shows as panels; also as one table."""

    @overload
    def __getitem__(self, place: SupportsIndex) -> ShownExplanation: ...
    @overload
    def __getitem__(self, place: slice) -> "ShownExplanations": ...
    def __getitem__(self, place: SupportsIndex | slice) -> "ShownExplanation | ShownExplanations":
        """One, or some of them that show themselves as all do."""
        found = super().__getitem__(place)
        return ShownExplanations(found) if isinstance(found, list) else found

    def plot(self, top: int = 12) -> list[Any]:
        """A waterfall of each (`ShownExplanation.plot`)."""
        return [why.plot(top) for why in self]

    def to_captum(self, truths: Sequence[object] | None = None) -> list[CaptumRecord]:
        """A record of each for captum's `visualize_text`.

        Args:
            truths: The right labels, if they are known.
        """
        known = [""] * len(self) if truths is None else truths
        return [why.to_captum(truth) for why, truth in zip(self, known, strict=True)]

    def to_frame(self) -> Any:
        """A tidy pandas DataFrame: a row for each active word of each text (`tidy.frame_of`)."""
        return frame_of(self)

    def to_shap(self) -> Any:
        """A `shap.Explanation` over the words of the texts (`tidy.shap_explanation`)."""
        return shap_explanation(self)

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    def _repr_html_(self) -> str:
        more = len(self) - SHOWN_IN_CELL
        cells = [explanation_html(why) for why in self[:SHOWN_IN_CELL]]
        return "<hr>".join([*cells, *([f"<p>and {more} more</p>"] if more > 0 else [])])
