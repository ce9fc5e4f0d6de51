"""`ShownExplanation`: an explanation that can show itself."""

import io
from dataclasses import asdict, fields
from typing import Any

from rich.console import Console

from splade.explanation import Explanation, WordContribution
from splade.report.explanation_html import explanation_html
from splade.report.explanation_terminal import explanation_panel
from splade.report.waterfall import Svg, waterfall

PRINTED_WIDTH = 100


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

    def plot(self, top: int = 12) -> Svg:
        """A waterfall of the strongest words that ends at the decision; a string that notebooks draw."""
        return waterfall(self, top)

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each active word, the most telling first."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install 'lexical-sae[frames]'") from error
        names = [field.name for field in fields(WordContribution)]
        return pd.DataFrame([asdict(word) for word in self.words], columns=pd.Index(names))
