import re

import pytest

from lexical_sae.report.studies.comparison import (
    ComparedRun,
    ComparedYardstick,
    Comparison,
    Difference,
    comparison_page,
)
from lexical_sae.report.studies.run_figures import RunFigures
from lexical_sae.report.tables import tables_html
from tests.report.explanations import NASTY

DIFFERENCE = Difference(mean=-0.02, low=-0.05, high=0.01, won=3, lost=20, p=0.001, p_of_all=0.0042)


def figures(**changes) -> RunFigures:
    plain = {"active_words": 41.26, "accuracy": 0.875, "accuracy_low": None, "accuracy_high": None, "delete": 0.9}
    plain |= {"follow": None, "function_words": 0.0, "lexical_neighbours": 0.7, "circuit": 0.8, "random_circuit": 0.3}
    plain |= {"presence": 0.874, "presence_shuffled": 0.51}
    return RunFigures(**{**plain, "seconds": 90.0, "peak_megabytes": 2048, "texts": 1872, "folder": "base", **changes})


def comparison(name="odd", **changes) -> Comparison:
    runs = (ComparedRun("base", {}, figures()), ComparedRun(name, {"a.b": None, "c": name}, figures(), DIFFERENCE))
    baselines = (ComparedYardstick("TF-IDF", 0.8, None, DIFFERENCE, 300),)
    return Comparison(name, "parts", 1, is_paired=True, runs=runs, baselines=baselines, **changes)


def test_a_row_says_what_was_found_in_its_columns():
    table, changes = comparison_page(comparison()).tables
    base, odd, tfidf = (dict(zip(table.columns, row, strict=True)) for row in table.rows)
    assert base == {
        **{"": "base", "accuracy": "87.5%", "against base": "", "p": "", "won : lost": "", "active words": "41.3"},
        **{
            "words enough": "80.0%",
            "random": "30.0%",
            "deletion test": "90.0%",
            "substitution test": "–",
            "presence": "0.87 (0.51)",
        },
        **{"function words": "0.0%", "minutes": "1.5", "peak MB": "2,048"},
    }
    assert (odd["against base"], odd["p"], odd["won : lost"]) == ("-2.0% (-5.0% to +1.0%)", "0.0042", "3 : 20")
    assert (tfidf["accuracy"], tfidf["active words"], tfidf["minutes"], tfidf["peak MB"]) == ("80.0%", "", "", "300")
    assert changes.rows == [("odd", "a.b: none, c: odd")]


def test_unpaired_experiments_have_no_difference_but_their_number_of_texts():
    runs = (ComparedRun("sst2", {}, figures(accuracy_low=0.86, accuracy_high=0.89)),)
    page = comparison_page(Comparison("films", "data sets", 3, is_paired=False, runs=runs))
    (table,) = page.tables
    assert table.columns[1:3] == ("accuracy", "test texts")
    assert table.rows[0][1:3] == ("87.5% (86.0% to 89.0%)", "1,872")
    assert page.summary == ("1 experiment, 3 seeds each.",)
    assert not any("sign test" in limit for limit in page.limits)


def test_names_of_several_seeds_have_their_interval_too():
    runs = (ComparedRun("base", {}, figures(delete_low=0.88, delete_high=0.92)),)
    (table,) = comparison_page(Comparison("films", "parts", 3, is_paired=True, runs=runs)).tables
    (row,) = (dict(zip(table.columns, row, strict=True)) for row in table.rows)
    assert (row["deletion test"], row["substitution test"]) == ("90.0% (88.0% to 92.0%)", "–")


def test_context_measures_have_a_table_where_there_are_any():
    runs = (ComparedRun("base", {}, figures(context_free=0.758, leakage=0.149)), ComparedRun("odd", {}, figures()))
    _, table = comparison_page(Comparison("films", "parts", 1, is_paired=True, runs=runs)).tables
    assert table.title == "Context"
    assert table.rows == [
        ("base", "87.5%", "75.8%", "14.9", "–", "–", "–"),
        ("odd", "87.5%", "–", "–", "–", "–", "–"),
    ]


@pytest.mark.parametrize("nasty", NASTY, ids=range(len(NASTY)))
def test_names_stay_text(nasty):
    plain, made = (re.sub(r"[^<>]", "", tables_html(comparison_page(comparison(name)))) for name in ("odd", nasty))
    assert made == plain
