import numpy as np
import pytest
from scipy.sparse import csr_array

from lexical_sae.intervene.concepts.candidates import suspect_words
from lexical_sae.intervene.concepts.fairness import Group
from lexical_sae.intervene.concepts.word_matrix import Readings

SIZE = 80
MEMBER = np.arange(SIZE) % 2 == 0
TRUTH = np.arange(SIZE) < SIZE // 2
"""The first half is toxic; in both halves every second text is about the group."""


def suspects(contributions):
    readings = Readings(csr_array(np.abs(contributions)), csr_array(contributions))
    return suspect_words(readings, TRUTH, [Group("sailors", MEMBER, ~MEMBER)], "word {}".format)


def flagged(value, rows):
    """What a word contributes to "toxic" where these rows are, and nothing elsewhere."""
    return value * rows.astype(float)


def test_words_are_suspect_for_what_they_say_in_harmless_texts_alone():
    in_harmless, in_toxic = flagged(1.0, MEMBER & ~TRUTH), flagged(5.0, MEMBER & TRUTH)
    found = suspects(np.stack([in_harmless, in_toxic], axis=1))
    assert [(word.name, word.group) for word in found] == [("word 0", "sailors")]
    assert found[0].difference == pytest.approx(1.0)


def test_the_greatest_difference_comes_first_and_its_sign_does_not_matter():
    strong, weak, equal = flagged(-2.0, MEMBER & ~TRUTH), flagged(1.0, MEMBER & ~TRUTH), flagged(3.0, ~TRUTH)
    found = suspects(np.stack([weak, strong, equal], axis=1))
    assert [word.name for word in found] == ["word 1", "word 0"]
    assert [word.difference for word in found] == pytest.approx([-2.0, 1.0])


def test_a_group_with_too_few_harmless_texts_is_passed_over():
    few = np.flatnonzero(MEMBER & ~TRUTH)[:3]
    member = TRUTH & MEMBER
    member[few] = True
    readings = Readings(csr_array(np.ones((SIZE, 1))), csr_array(flagged(1.0, member)[:, None]))
    assert suspect_words(readings, TRUTH, [Group("captains", member, ~member)], "word {}".format) == []
