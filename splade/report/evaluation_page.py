"""An evaluation on a page: three questions, each with its figures, its charts, and all the rest to unfold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from splade.report.evaluation_charts import decision_charts, truth_charts
from splade.report.evaluation_figures import decision_rows, truth_rows, word_rows
from splade.report.evaluation_tables import decision_tables, measuring_table, truth_tables, word_tables
from splade.report.page import Figures
from splade.report.picture import Picture
from splade.report.tables import FigureTable


@dataclass(frozen=True)
class Topic:
    """A question, its answer in a few figures and charts, and the tables behind it."""

    figures: Figures
    charts: Sequence[Picture]
    tables: Sequence[FigureTable]


@dataclass(frozen=True)
class EvaluationPart:
    """What a page shows of an evaluation."""

    about: str
    topics: Sequence[Topic]
    measuring: FigureTable


def evaluation_part(found: Mapping[str, Any]) -> EvaluationPart:
    """All of `evaluation.json` but the folder of the model, which is nobody's business who is sent the page."""
    return EvaluationPart(
        f"On {found['texts']} texts of {found['data']}. In brackets and as upright lines: 95 % intervals over texts.",
        [
            Topic(
                Figures("How well does it decide?", decision_rows(found)),
                decision_charts(found),
                decision_tables(found),
            ),
            Topic(
                Figures("Are its explanations true?", truth_rows(found)),
                truth_charts(found),
                truth_tables(found),
            ),
            Topic(Figures("What are its words like?", word_rows(found)), (), word_tables(found)),
        ],
        measuring_table(found),
    )
