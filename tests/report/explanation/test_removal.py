from dataclasses import replace

import pytest

from lexical_sae.report.explanation.removal import effect, is_marked, notes_on_decision
from tests.report.explanations import explanation, word


@pytest.mark.parametrize(
    ("said", "without", "marked"),
    [
        (0.33, 0.41, True),
        (0.45, 0.47, False),
        (-0.33, -0.41, True),
        (0.33, -0.33, True),
        (0.5, 0.0, True),
        (0.004, 0.001, False),
        (0.048, 0.055, False),
        (0.05, 0.061, True),
        (0.0, 0.0, False),
        (10.0, 9.5, False),
        (0.3, None, False),
    ],
)
def test_only_removals_that_differ_clearly_are_marked(said, without, marked):
    # Whether hidden units switch is not the question: they nearly always do.
    for changed in (True, False):
        one = word(0, if_removed=None if without is None else -without, region_changed=changed)
        assert is_marked(type(one)(**{**vars(one), "contribution": said})) is marked


def test_the_effect_is_the_change_of_the_sum():
    assert effect(word(0, if_removed=-10.0)) == "-10.00"
    assert effect(word(1, if_removed=4.0)) == "+4.00*"
    assert effect(word(0, if_removed=None)) == "–"


def test_whether_a_decision_hangs_on_one_word_is_said_of_all_words():
    many = [word(i) for i in range(20)]
    assert notes_on_decision(explanation(words=tuple(many))) == "No single removal changes the decision."
    many[17] = word(17, label_if_removed="negative")
    assert notes_on_decision(explanation(words=tuple(many))).endswith("changes the decision: word17.")
    assert notes_on_decision(explanation(words=(word(0, label_if_removed=None),))) == ""
    assert notes_on_decision(explanation(words=())) == ""


def test_pieces_that_a_decision_hangs_on_are_counted_not_named():
    piece = replace(word(1, "##ual", label_if_removed="negative"), kind="piece")
    why = explanation(words=(word(0), piece))
    assert notes_on_decision(why).endswith("changes the decision: any of 1 piece or symbol.")
    assert notes_on_decision(why.listed()) == notes_on_decision(why)
    assert notes_on_decision(replace(why, all_tokens=True)).endswith("changes the decision: ##ual.")
    assert notes_on_decision(explanation(words=(replace(word(0), kind="piece"),))).startswith("No single removal")
