"""`fit(..., unlabelled=texts)`: further texts that have no label to give."""

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from sklearn.model_selection import cross_val_score

from lexical_sae.sklearn import LexicalRegressor
from tests.sklearn.reviews import LABELS, TEXTS

MORE = ["the river was churchly good", "an churchly church", "a boring river and a church"]


def test_unlabelled_texts_move_the_table_and_bring_their_words(quick):
    without = quick.fit(TEXTS, LABELS).model_
    found = quick.fit(TEXTS, LABELS, unlabelled=pd.Series(MORE)).model_
    again = quick.fit(TEXTS, LABELS, unlabelled=MORE).model_
    assert found.dimensions.find("churchly")
    assert "churchly" not in without.config.literal.multi_piece_words
    assert torch.equal(found.head().word_vectors, again.head().word_vectors)
    good = quick.model_.tokenizer.convert_tokens_to_ids("good")
    assert not torch.equal(found.head().word_vectors[good], without.head().word_vectors[good])
    assert set(quick.predict(MORE)) <= set(LABELS)
    assert len(quick.lexicon().rows) > 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("one text", "unlabelled is one str, not a list of texts"),
        ([TEXTS[0], None], "1 of 2 rows of unlabelled are no text .rows 1, counted from 0; row 1 is nothing"),
        ([], "of 0 unlabelled texts none is left"),
        (TEXTS[:2], "of 2 unlabelled texts none is left: all are among the labelled ones"),
    ],
)
def test_what_cannot_be_used_is_refused(quick, given, said):
    with pytest.raises(ValueError, match=said):
        quick.fit(TEXTS, LABELS, unlabelled=given)


def test_a_missing_label_names_the_remedy(quick):
    with pytest.raises(ValueError, match="Input y contains NaN; .*or give them as unlabelled="):
        quick.fit(TEXTS[:3], ["good", None, "bad"])


def test_they_reach_the_fits_of_a_cross_validation_by_metadata_routing(quick):
    with sklearn.config_context(enable_metadata_routing=True):
        asked = quick.set_fit_request(unlabelled=True)
        scores = cross_val_score(asked, np.array(TEXTS), LABELS, cv=2, params={"unlabelled": MORE})
    assert scores.min() > 0.5


def test_numbers_take_them_too(encoder):
    numbers = [float(label == "good") for label in LABELS]
    reg = LexicalRegressor(encoder=encoder, context=False, random_state=0)
    assert reg.fit(TEXTS, numbers, unlabelled=MORE).model_.dimensions.find("churchly")
