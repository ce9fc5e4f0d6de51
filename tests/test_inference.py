import pytest

from splade.inference import explain
from tests import tiny

TEXTS = ["a good film", "", "terrible boring plot and awful acting", "good", "very " * 100]


@pytest.fixture(scope="module")
def model():
    return tiny.model()


def test_contributions_and_bias_sum_to_the_centred_logit(model):
    import torch

    from splade.data.batches import tokenise

    tokenised = tokenise(model.tokenizer, TEXTS, model.max_length)
    for row, explanation in enumerate(explain(model, TEXTS)):
        batch = tokenised.batch([row])
        with torch.no_grad():
            logits = model.classify_document(batch.input_ids, batch.attention_mask).logits[0]
        total = sum(word.contribution for word in explanation.words) + explanation.bias
        assert total == pytest.approx(float(logits.max() - logits.mean()), abs=1e-4)
        assert explanation.label == model.labels["classify"][int(logits.argmax())]
        assert explanation.probability == pytest.approx(float(logits.softmax(-1).max()), abs=1e-5)


def test_the_most_telling_word_comes_first(model):
    for explanation in explain(model, TEXTS):
        sizes = [abs(word.contribution) for word in explanation.words]
        assert sizes == sorted(sizes, reverse=True)
        assert all(word.strength > 0 for word in explanation.words)
        assert explanation.identity_error <= 1e-5


def test_answers_come_in_the_order_of_the_texts_whatever_the_batches(model):
    together = explain(model, TEXTS, batch_size=2)
    assert [e.text for e in together] == TEXTS
    for text, explanation in zip(TEXTS, together, strict=True):
        (alone,) = explain(model, [text])
        assert alone.label == explanation.label
        assert alone.probability == pytest.approx(explanation.probability, abs=1e-5)


def test_what_was_cut_is_said(model):
    assert [e.tokens_cut for e in explain(model, TEXTS)] == [0, 0, 0, 0, 38]


def test_no_special_token_is_ever_a_reason(model):
    names = {word.word for e in explain(model, TEXTS) for word in e.words}
    assert names
    assert not names & set(tiny.SPECIALS)


@pytest.mark.parametrize("texts", ["a good film", b"bytes", None, 3, {"a": "b"}])
def test_what_is_no_list_of_texts_is_refused(model, texts):
    with pytest.raises(ValueError, match="put your texts in a list"):
        explain(model, texts)


def test_any_iterable_of_texts_will_do(model):
    import numpy as np
    import pandas as pd

    expected = explain(model, TEXTS[:2])
    assert explain(model, (text for text in TEXTS[:2])) == expected
    assert explain(model, np.array(TEXTS[:2], dtype=object)) == expected
    assert explain(model, pd.Series(TEXTS[:2])) == expected


def test_no_texts_give_no_explanations(model):
    assert explain(model, []) == []
