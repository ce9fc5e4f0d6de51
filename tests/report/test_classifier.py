import re

import pytest

from lexical_sae.report.classifier import MOST_CLASSES, ClassWord, classifier_html
from tests.report.explanations import NASTY


def shown(name):
    return classifier_html(name, [(name, [ClassWord(name, 2.0, 7), ClassWord("b", 1.0, None)]), ("other", [])], 3)


@pytest.mark.parametrize("nasty", NASTY, ids=range(len(NASTY)))
def test_strings_stay_text(nasty):
    tags = re.compile(r"<[a-z/!][^>]*>", re.I)
    assert tags.findall(shown(nasty)) == tags.findall(shown("ordinary"))


def test_bars_are_as_long_as_the_weights_and_nothing_takes_a_colour_from_a_theme():
    html = shown("ordinary")
    assert re.findall(r"width: ([\d.]+)%; background", html) == ["100.0", "50.0"]
    assert not re.search(r"(?<!-)color:|<script|<style|class=", html)


def test_many_classes_are_counted():
    html = classifier_html("x", [(f"class {i}", []) for i in range(MOST_CLASSES + 3)], 0)
    assert html.count("<table") == MOST_CLASSES
    assert "and 3 more classes" in html
