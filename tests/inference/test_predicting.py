import logging

import numpy as np
import pandas as pd
import pytest
import torch

from lexical_sae.data.batches import tokenize
from lexical_sae.inference import explain, predict, predict_proba, score
from tests import tiny

TEXTS = ["a good film", "", "terrible boring plot and awful acting", "good", "very " * 100]


@pytest.fixture(scope="module")
def model():
    return tiny.model()


def test_probabilities_are_the_softmax_of_the_logits(model):
    found = predict_proba(model, TEXTS, batch_size=2)
    tokenized = tokenize(model.tokenizer, TEXTS, model.max_length)
    for row, probabilities in enumerate(found):
        batch = tokenized.batch([row])
        with torch.no_grad():
            logits = model.classify_document(batch.input_ids, batch.attention_mask).logits[0]
        assert probabilities.tolist() == pytest.approx(logits.softmax(-1).tolist(), abs=1e-5)
    assert predict_proba(model, TEXTS[0]).shape == (3,)
    assert predict_proba(model, []).shape == (0, 3)


def test_the_label_is_the_most_probable_one(model):
    names = model.labels["classify"]
    expected = [names[i] for i in predict_proba(model, TEXTS).argmax(-1).tolist()]
    assert predict(model, TEXTS) == expected
    assert predict(model, TEXTS[2]) == expected[2]
    assert [why.label for why in explain(model, TEXTS)] == expected


def test_score_is_the_share_of_right_labels(model):
    right = predict(model, TEXTS)
    wrong = ["negative" if label != "negative" else "positive" for label in right]
    assert score(model, TEXTS, right) == 1.0
    assert score(model, (text for text in TEXTS), iter([*wrong[:2], *right[2:]])) == 0.6
    places = np.array([model.labels["classify"].index(label) for label in right])
    assert score(model, np.array(TEXTS, dtype=object), places) == 1.0


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        (["good", "bad"], ["positive"], "only 1 labels but more texts"),
        (["good"], ["positive", "positive"], "only 1 texts but more labels"),
        ([], [], "no texts to score"),
        (["good"], ["great"], "text 0: label 'great' is not a label"),
        (["good"], [None], "text 0: label is NoneType"),
        (["good"], [1.0], "text 0: label is float 1.0"),
        ("good", ["positive"], "in lists"),
    ],
    ids=["texts", "labels", "empty", "unknown", "none", "float", "alone"],
)
def test_labels_that_do_not_fit_the_texts_are_refused(model, texts, labels, message):
    with pytest.raises(ValueError, match=message):
        score(model, texts, labels)


@pytest.mark.parametrize(
    "texts",
    [b"bytes", None, 3, {"a": "b"}, pd.DataFrame({"text": ["good"]}), np.array("good"), np.array([["good"]])],
    ids=["bytes", "none", "number", "dict", "table", "no dimension", "two dimensions"],
)
@pytest.mark.parametrize("ask", [predict, predict_proba, explain])
def test_what_is_no_text_and_no_list_of_texts_is_refused(model, ask, texts):
    with pytest.raises(ValueError, match="give one string, or put your texts in a list"):
        ask(model, texts)


def test_a_text_that_is_no_string_is_named_by_its_row_however_far_down(model):
    with pytest.raises(ValueError, match="text 40 is float nan"):
        predict(model, ["good"] * 40 + [float("nan")], batch_size=1)


@pytest.mark.parametrize("damage", [torch.nan, torch.inf])
@pytest.mark.parametrize("ask", [predict, predict_proba, explain])
def test_a_damaged_model_decides_nothing(ask, damage):
    model = tiny.model()
    with torch.no_grad():
        model.head().class_bias[1] = damage
    with pytest.raises(FloatingPointError, match="weights are damaged"):
        ask(model, TEXTS)


def test_any_iterable_of_texts_will_do(model):
    expected = explain(model, TEXTS[:2])
    for same in ((t for t in TEXTS[:2]), np.array(TEXTS[:2]), pd.Series(TEXTS[:2])):
        assert explain(model, same) == expected
    assert predict(model, tuple(TEXTS)) == predict(model, TEXTS)
    assert explain(model, []) == predict(model, []) == []


def test_characters_that_no_tokenizer_takes_are_replaced_and_places_fit(model):
    (why,) = explain(model, ["good\0film \ud83d bad"])
    assert why.text == "good film \ufffd bad"
    assert all(why.text[span.start : span.end] == span.text for span in why.spans)


def test_what_was_cut_is_logged(model, caplog):
    with caplog.at_level(logging.WARNING, logger="lexical_sae.inference.reading"):
        assert [why.tokens_cut for why in explain(model, TEXTS)] == [0, 0, 0, 0, 38]
    assert "1 texts were longer than the 64 tokens" in caplog.text


def test_a_model_in_training_is_put_to_rest_first():
    model = tiny.model().train()
    predict(model, "good")
    assert not model.training
