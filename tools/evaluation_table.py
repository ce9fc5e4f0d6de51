"""Print the tables of several evaluations side by side, as a Markdown page.

    python tools/evaluation_table.py results/cpu/sst2_frontier results/cpu/ag_news > docs/lab/evaluation-figures.md

Each argument is a folder with an `evaluation.json`, or such a file. Rows that only some of them
have, such as the classes of a data set, and reliability curves are left out.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lexical_sae.evaluation.results import EvaluationResults
from lexical_sae.evaluation.views.page import evaluation_part
from lexical_sae.report.tables import FigureTable
from lexical_sae.runs.folder import EVALUATION

LEFT_OUT = {"Decisions by their confidence"}


def figures(table: FigureTable) -> dict[str, str]:
    """The cells of a table by row and column. Example: `{"10% of the words: accuracy": "94.0%"}`"""
    cells = {}
    for name, *values in table.rows:
        for column, value in zip(table.columns[1:], values, strict=True):
            cells[f"{name}: {column}" if column != "figure" else name] = value
    return cells


def side_by_side(evaluations: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Lines of the page."""
    names = [str(found["data"]) for found in evaluations]
    parts = [evaluation_part(EvaluationResults.from_dict(found)) for found in evaluations]
    for topics in zip(*(part.topics for part in parts), strict=True):
        yield f"\n## {topics[0].figures.heading}"
        of_each = [{table.title: table for table in topic.tables} for topic in topics]
        titles = [title for title in of_each[0] if title not in LEFT_OUT and all(title in one for one in of_each)]
        for title in titles:
            columns = [figures(tables[title]) for tables in of_each]
            shared = [row for row in columns[0] if all(row in other for other in columns) and columns[0][row]]
            if shared:
                yield from (f"\n**{title}**\n", f"| | {' | '.join(names)} |", "|---|" + "---|" * len(names))
                yield from (f"| {row} | {' | '.join(column[row] for column in columns)} |" for row in shared)


def main() -> None:
    places = [Path(given) for given in sys.argv[1:]]
    files = [place / EVALUATION if place.is_dir() else place for place in places]
    evaluations = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    texts = ", ".join(f"{found['texts']:,} of {found['data']}" for found in evaluations)
    command = " ".join(["python tools/evaluation_table.py", *sys.argv[1:]])
    print(f"# Every figure of the evaluation\n\nMade by `{command}`; [what they mean](../evaluation.md).")
    print(f"Test texts: {texts}. In brackets 95 % intervals over texts.")
    print("One seed each, so they vary by seed and machine ([how far](../results.md#how-far-figures-vary)).")
    print("\n".join(side_by_side(evaluations)))


if __name__ == "__main__":
    main()
