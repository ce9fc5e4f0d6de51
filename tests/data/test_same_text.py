import numpy as np
import pytest

from lexical_sae.data.same_text import LEAST_INSIDE, letters_of, rows_held


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It's (almost) over.", "it 's -lrb- almost -rrb- over ."),
        ("a cliché", "A cliche\u0301 !"),
        ("10/10,  would   see again", "10 / 10 would see again"),
    ],
    ids=["treebank", "accents", "numbers"],
)
def test_one_text_written_in_two_ways_is_one(one, other):
    assert letters_of(one) == letters_of(other)


def test_texts_without_letters_differ_by_what_they_are():
    assert letters_of("👍") != letters_of("👎")
    assert rows_held(["👍 ", "👎", ""], ["👍"]) == {0}


def test_a_sentence_inside_a_longer_text_is_held_and_a_phrase_is_not():
    sentence = "this is a shameless sham , calculated to cash in ."
    longer = "No aspirations. This is a shameless sham, calculated to cash in. Avoid."
    assert rows_held([sentence, "a shameless sham", "another film"], [longer, "a film"]) == {0}
    assert rows_held([longer], [sentence]) == set(), "most of the longer text is new"


def test_equal_texts_are_all_held():
    assert rows_held(["a film", "A film!", "the film"], iter(["a film."])) == {0, 1}


def test_rows_are_those_that_a_search_through_all_texts_finds():
    rng = np.random.default_rng(0)
    others = ["".join(rng.choice(list("ab"), rng.integers(1, 90))) for _ in range(60)]
    texts = [text[start:] for text in others for start in (0, 3)] + ["b" * LEAST_INSIDE]
    wanted = {
        row
        for row, text in enumerate(texts)
        if any(text == other or (len(text) >= LEAST_INSIDE and text in other) for other in others)
    }
    assert rows_held(texts, others) == wanted
