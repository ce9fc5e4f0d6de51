"""Words that a model with literal words never met are taken away by their spelling."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lexical_sae.inference import explain, find_reasons, predict
from lexical_sae.inference.spans import explain_model_spans
from lexical_sae.intervene import (
    Lexicon,
    SuppressedModel,
    apply_lexicon,
    edit_saved_model,
    find_words,
    opened_to_words,
    suppress_token_globally,
)
from lexical_sae.models.persistence import from_pretrained, save_pretrained
from lexical_sae.models.word_views import without_last_words
from tests import tiny
from tests.literal import SPLIT, TEXTS, UNSEEN, batch_of, literal_model, opened

SLUR = "boringly"
WITH_IT = [UNSEEN[0], UNSEEN[1], "Boringly boringly BORINGLY filmed"]


def logits_of(model, text):
    model = opened(model, text)
    with torch.no_grad():
        return model.read(model.encode_sparse(*batch_of(model, text))).logits[0]


def said_by(model, text, word=SLUR):
    """What each class gets from a word of a text."""
    model = opened(model, text)
    (place,) = model.dimensions.find(word)
    with torch.no_grad():
        code = model.encode_sparse(*batch_of(model, text))
    return code.dense()[0, place] * model.head().word_vectors[place]


@pytest.mark.parametrize("way", ["view", "for good", "saved"])
def test_an_unseen_word_closed_by_name_says_exactly_nothing_and_the_others_what_they_said(way, tmp_path):
    model = literal_model()
    if way == "view":
        without = SuppressedModel(model, SLUR)
    else:
        without = literal_model()
        suppress_token_globally(without, SLUR)
    if way == "saved":
        save_pretrained(without, tmp_path / "model")
        without = from_pretrained(tmp_path / "model")
    for text in WITH_IT:
        assert said_by(model, text).abs().min() > 0
        assert torch.equal(said_by(without, text), torch.zeros(3))
        torch.testing.assert_close(logits_of(without, text), logits_of(model, text) - said_by(model, text))
        assert SLUR not in {word.word for word in explain(without, text, all_tokens=True).words}
    for text in TEXTS:
        assert torch.equal(logits_of(without, text), logits_of(model, text))


@given(st.lists(st.sampled_from([SLUR, "good", "film", "filmed", "unhappyness", ",", "Boringly"]), max_size=6))
@settings(max_examples=25, deadline=None)
def test_it_is_closed_in_any_text(words):
    text = " ".join(words)
    without = SuppressedModel(literal_model(), SLUR)
    assert not [word for word in explain(without, text, all_tokens=True).words if word.word.casefold() == SLUR]


def test_all_forms_of_a_word_are_closed_though_training_met_only_one():
    model = literal_model()
    (found,) = find_words(opened_to_words(model, "good"), "good")
    names = opened_to_words(model, "good").dimensions.names(found.dimensions)
    assert names == ["good", "goods"]
    done = suppress_token_globally(model, "good")
    assert model.config.literal.multi_piece_words == (*SPLIT, "goods")
    assert done.words[0].dimensions == found.dimensions
    for text in ("good film", "goods film", "GOODS film"):
        assert {word.word for word in explain(model, text, all_tokens=True).words} == {"film"}
    # The control: another model reads it.
    assert "goods" in {word.word for word in explain(literal_model(), "goods film", all_tokens=True).words}


def test_undoing_leaves_the_model_as_it_was_bitwise():
    model = literal_model()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    first = suppress_token_globally(model, SLUR)
    second = suppress_token_globally(model, ["good", "unhappyness"])
    with pytest.raises(ValueError, match="undo later removals first"):
        first.undo()
    second.undo()
    first.undo()
    after = model.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert model.config == literal_model().config
    assert len(model.dimensions) == len(literal_model().dimensions)


def test_words_given_by_a_generator_are_all_closed():
    model = literal_model()
    done = suppress_token_globally(model, (word for word in (SLUR, "good")))
    assert [word.word for word in done.words] == [SLUR, "good"]


@pytest.mark.parametrize("word", ["good film", "boringly-good", "☃", " "])
def test_what_is_not_one_word_is_refused_and_nothing_is_changed(word):
    model = literal_model()
    with pytest.raises(ValueError, match=r"no dimension|unknown token|empty"):
        suppress_token_globally(model, [SLUR, word])
    assert model.config.literal.multi_piece_words == SPLIT


def test_a_model_whose_words_are_read_from_logits_refuses_unseen_words_as_before():
    with pytest.raises(ValueError, match="has no dimension of its own"):
        suppress_token_globally(tiny.model(), SLUR)


def test_an_edited_model_keeps_an_unseen_word_closed_through_a_second_edit(tmp_path):
    original = save_pretrained(literal_model(), tmp_path / "original")
    edit_saved_model(original, Lexicon(forbid=(SLUR,)), tmp_path / "once")
    done = edit_saved_model(tmp_path / "once", Lexicon(forbid=("unhappyness",)), tmp_path / "twice")
    assert [word.word for word in done.words] == [SLUR, "unhappyness"]
    back = from_pretrained(tmp_path / "twice")
    assert [word.word for word in explain(back, UNSEEN[1], all_tokens=True).words if word.word not in SPLIT] == []


def test_a_word_that_has_no_weight_may_be_kept_and_one_that_was_closed_may_not():
    model = literal_model()
    church = list(model.dimensions.find("church"))
    with torch.no_grad():
        model.head().word_vectors[church] = 0.0
        model.gate.closed[church] = True
    apply_lexicon(model, Lexicon(forbid=(SLUR,), keep=("church",)))
    with pytest.raises(ValueError, match="keeps 'boringly', but it is already suppressed in this model"):
        apply_lexicon(model, Lexicon(forbid=("good",), keep=(SLUR,)))


def test_words_that_were_added_can_be_cut_off_again():
    model = literal_model()
    longer = opened(model, *UNSEEN)
    back = without_last_words(longer, 2)
    assert back.config == model.config
    one, other = model.state_dict(), back.state_dict()
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert len(back.dimensions) == len(model.dimensions)


# What is asked about texts


def test_reasons_and_spans_know_unseen_words():
    model = literal_model()
    with torch.no_grad():
        # Boringly decides: it outweighs whatever the others say.
        model.head().word_vectors.mul_(0.01)
    reasons = find_reasons(model, UNSEEN[0])
    assert reasons.flip.words == (SLUR,)
    assert reasons.flip.is_minimal
    without = SuppressedModel(model, SLUR)
    assert predict(without, UNSEEN[0]) == reasons.flip.label != reasons.label
    spans = dict(explain_model_spans(model, UNSEEN[0], "sum"))
    routed = dict(explain_model_spans(model, UNSEEN[0]))
    assert spans.keys() == routed.keys() == {"a", SLUR, "good", "film"}
    for word, score in spans.items():
        assert score == pytest.approx(routed[word], abs=1e-6)
    assert spans[SLUR] != 0
    assert dict(explain_model_spans(without, UNSEEN[0]))[SLUR] == 0
