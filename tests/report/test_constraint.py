import pytest

from lexical_sae.report.page import Figures, Page, page_html
from lexical_sae.report.terminal import constraint_rows, figures_table, mean_figures, score_figures
from tests.commands.runs import INTERVAL, TEST
from tests.report.test_terminal import rendered


def results(ce, tau, *, is_feasible, **others):
    return {"seed": 0, "test": TEST, "tau_ce": tau, "validation": {"ce": ce, "is_feasible": is_feasible}, **others}


KEPT = results(0.412, 0.4, is_feasible=True)
BROKEN = results(0.9, 0.4, is_feasible=False, **{"lambda": 148.41})


def test_a_constraint_that_was_kept_is_said_with_its_figures():
    assert constraint_rows(KEPT) == [
        ("cross-entropy kept", "yes", "validation 0.412, tau 0.400; up to 1.05 tau is kept")
    ]


def test_a_constraint_that_was_broken_is_said_with_reason_and_remedy():
    ((name, value, why),) = constraint_rows(BROKEN)
    assert (name, value) == ("cross-entropy kept", "no")
    assert why.startswith("validation 0.900, tau 0.400: no epoch after the warm-up came to 1.05 tau or less")
    assert "lambda ended at 148." in why
    for remedy in (
        "training.controller.tau_ce",
        "training.short_first",
        "training.max_epochs",
        "training.target_accuracy",
    ):
        assert remedy in why
    older = {name: value for name, value in BROKEN.items() if name != "lambda"}
    assert constraint_rows(older)[0][2].startswith("validation 0.900, tau 0.400: no epoch")


@pytest.mark.parametrize("run", [{"seed": 0, "test": TEST}, results(0.4, None, is_feasible=True)])
def test_where_nothing_had_to_be_kept_nothing_is_said(run):
    assert constraint_rows(run) == []


def test_summary_and_page_say_whether_it_was_kept():
    for run, said in ((KEPT, "yes"), (BROKEN, "no")):
        heading, rows = score_figures(run)
        told = {name: value for name, value, _ in rows}
        assert told["cross-entropy kept"] == said
        assert "cross-entropy kept" in rendered(figures_table(heading, rows), width=200)
        assert f"cross-entropy kept<b>{said}</b>" in page_html(Page("A run", headline=Figures(heading, rows)))


def test_of_several_seeds_those_that_kept_it_are_counted():
    mean = {"accuracy": INTERVAL, "active_words": INTERVAL}
    _, rows = mean_figures({"runs": [KEPT, BROKEN, KEPT], "mean": mean})
    assert ("cross-entropy kept", "2 of 3") in [row[:2] for row in rows]
    assert len(mean_figures({"runs": [{"seed": 0, "test": TEST}], "mean": mean})[1]) == len(rows) - 1


def test_a_model_that_guesses_is_said_to_and_not_told_to_raise_tau():
    guesses = results(1.386, 1.386, is_feasible=False)
    guesses["validation"]["guessing_ce"] = 1.3863
    ((_, value, why),) = constraint_rows(guesses)
    assert value == "no"
    assert "no better than always giving the same answer (1.386)" in why
    assert "training.learning_rate" in why
    assert "tau_ce" not in why
    guesses["validation"]["guessing_ce"] = 2.0
    assert "came to 1.05 tau or less" in constraint_rows(guesses)[0][2]
