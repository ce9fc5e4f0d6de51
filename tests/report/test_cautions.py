"""Warnings and abstentions are shown above the words, in every view; ordinary explanations have none."""

import pytest

from lexical_sae.explanation import ABSTAIN, InputWarning
from lexical_sae.report.explanation.html import explained_text
from lexical_sae.report.html_templates import templates
from tests.report.explanations import explanation

WARNING = InputWarning("unlike_training", "Unlike the training texts: <b>possibly</b> off topic.")


def fragment(why):
    module = templates().get_template("explained_text.html.j2").module
    return str(module.reasons(explained_text(why, 5)))


VIEWS = {"terminal": str, "notebook": lambda why: why._repr_html_(), "page": fragment}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_warning_is_shown_once_and_escaped(view):
    plain, warned = view(explanation()), view(explanation(warnings=(WARNING,)))
    assert "⚠" not in plain
    assert warned.count("⚠") == 1
    assert "Unlike the training texts" in warned
    assert view is str or "<b>possibly" not in warned


@pytest.mark.parametrize("view", [VIEWS["terminal"], VIEWS["notebook"]])
def test_an_abstention_names_the_most_probable_label_and_the_reason(view):
    why = explanation(label=ABSTAIN, abstained="Confidence is 93%.")
    shown = view(why)
    assert "abstain" in shown
    assert "most probable: positive 93%" in shown
    assert "⚠ Confidence is 93%." in shown


def test_a_reason_that_is_a_warning_is_not_said_twice():
    assert explanation(label=ABSTAIN, warnings=(WARNING,), abstained=WARNING.message).cautions == (WARNING.message,)


def test_removals_are_compared_with_the_most_probable_label_where_the_model_abstains():
    why = explanation(label=ABSTAIN, abstained="why")
    assert why.most_probable == "positive"
    assert not explained_text(why, 5)["has_changes"]
