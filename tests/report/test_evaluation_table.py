"""The tool that sets evaluations side by side."""

import runpy
from pathlib import Path

from lexical_sae.report.tables import FigureTable
from tests.report.evaluations import evaluation

TOOL = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "evaluation_table.py"))


def test_a_figure_goes_by_its_row_and_column():
    table = FigureTable("Circuits", ("", "accuracy", "figure"), [("10%", "94.0%", "3"), ("all", "95.0%", "30")])
    assert TOOL["figures"](table) == {"10%: accuracy": "94.0%", "10%": "3", "all: accuracy": "95.0%", "all": "30"}


def test_evaluations_stand_side_by_side_and_what_one_has_alone_is_left_out():
    ours, theirs = evaluation(), evaluation()
    ours["data"], theirs["data"] = "reviews.csv", "news"
    ours["performance"]["classes"][0]["label"] = "of one data set"
    lines = list(TOOL["side_by_side"]([ours, theirs]))
    assert "| | reviews.csv | news |" in lines
    assert [line for line in lines if line.startswith("\n## ")] == [
        "\n## How well does it decide?",
        "\n## Are its explanations true?",
        "\n## What are its words like?",
    ]
    rows = [line.split(" | ") for line in lines if line.startswith("| 10%: contributions")]
    assert len(rows) == 2, "comprehensiveness and sufficiency"
    assert all(one.rstrip(" |") == other.rstrip(" |") for _, one, other in rows)
    assert not any("of one data set" in line for line in lines)
