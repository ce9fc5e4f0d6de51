"""Explanations that can show themselves: one, and a list of them."""

import io
from dataclasses import asdict, fields
from typing import Any

from rich.console import Console

from lexical_sae.explanation import Explanation, WordContribution
from lexical_sae.report.charts.waterfall import Svg, waterfall
from lexical_sae.report.explanation.html import explanation_html
from lexical_sae.report.explanation.terminal import explanation_panel
from lexical_sae.report.explanation.tidy import figure_of, frame_of, sentence, shap_explanation

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
        """A pandas DataFrame with a row for each active word, the top-attributed first."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install 'lexical-sae[frames]'") from error
        names = [field.name for field in fields(WordContribution)]
        return pd.DataFrame([asdict(word) for word in self.words], columns=pd.Index(names))


class ShownExplanations(list[ShownExplanation]):
    """A list of explanations that a notebook shows as HTML and `print` shows as panels; also as one table."""

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
