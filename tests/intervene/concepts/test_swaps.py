import numpy as np
import pytest

from lexical_sae.intervene.concepts.swaps import swap_effect, swap_words
from lexical_sae.intervene.concepts.word_matrix import Predictions


def predictions(*scores: float) -> Predictions:
    score = np.array(scores)
    return Predictions((score > 0.5).astype(int), score > 0.5, score)


def test_words_are_swapped_both_ways_whole_and_in_their_case():
    texts = ["Muslim men and CHRISTIAN women", "muslims stay", "nothing here", "a christian."]
    swapped = swap_words(texts, {"muslim": "christian"})
    assert swapped.rows == (0, 3)
    assert swapped.after == ("Christian men and MUSLIM women", "a muslim.")
    assert swapped.before == (texts[0], texts[3])


def test_swapping_twice_gives_the_texts_back():
    texts = ["the sailor met a farmer", "Farmer, sailor, SAILOR"]
    once = swap_words(texts, {"sailor": "farmer"}).after
    assert swap_words(once, {"sailor": "farmer"}).after == tuple(texts)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [({"a": "A"}, "two different words"), ({"a": " "}, "two different words"), ({"a": "b", "c": "b"}, "choose one")],
)
def test_pairs_that_are_none_are_refused(pairs, message):
    with pytest.raises(ValueError, match=message):
        swap_words(["a b"], pairs)


def test_the_effect_is_the_change_of_the_score_and_the_share_of_other_labels():
    found = swap_effect(predictions(0.9, 0.2, 0.4), predictions(0.3, 0.2, 0.6))
    assert found.change.mean == pytest.approx(0.8 / 3)
    assert found.flipped.mean == pytest.approx(2 / 3)
    still = swap_effect(predictions(0.9, 0.2), predictions(0.9, 0.2))
    assert (still.change.mean, still.flipped.mean) == (0, 0)
    assert swap_effect(predictions(), predictions()).texts == 0
