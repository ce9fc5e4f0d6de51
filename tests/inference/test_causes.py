"""Which word causes a shift: against leaving words out by hand, and where the cause is planted."""

import pytest
import torch

from lexical_sae.inference import causes, explain, predict
from lexical_sae.inference.causes import LEAST_SHARE, NEAREST
from tests.literal import batch_of, literal_model

TEXTS = [
    "a badly filmed plot, and not a good film",
    "the acting was wonderful, not boring",
    "a bad dog and a good film",
]


@pytest.fixture(scope="module")
def model():
    return literal_model()


@pytest.fixture(scope="module")
def explained(model):
    return explain(model, TEXTS, causes=True)


def factor_of(model, tokens, word):
    """Activation of a word of a tokenised text, as a multiple of its default."""
    ids = torch.tensor([tokens])
    code = model.encode_sparse(ids, torch.ones_like(ids))
    at = model.dimensions.names(code.ids.tolist()).index(word)
    return float(code.values[at] / code.defaults[at])


def shares_by_hand(model, text, word):
    """What leaving out each other word of a text takes away of a word's shift, by its place."""
    ids, _ = batch_of(model, text)
    encoded = model.tokenizer(text, return_offsets_mapping=True)
    found = {}
    for start, end in spans_of(text):
        if start <= word.start < end or text[start:end] == text[word.start : word.end]:
            continue
        rest = [
            token
            for token, (first, last) in zip(ids[0].tolist(), encoded["offset_mapping"], strict=True)
            if not (start <= first < last <= end)
        ]
        left = factor_of(model, rest, word.word) - 1
        found[start, end] = 1 - abs(left / (word.contribution / word.default - 1))
    return found


def spans_of(text):
    at = 0
    for part in text.replace(",", " ").split(" "):
        if part:
            yield at, at + len(part)
        at += len(part) + 1


def test_the_cause_is_the_word_without_which_most_is_gone(model, explained):
    shifted = 0
    for text, why in zip(TEXTS, explained, strict=True):
        for word in why.words:
            if not word.context:
                assert word.cause is None
                continue
            shifted += 1
            shares = shares_by_hand(model, text, word)
            most = max(shares.values())
            if word.cause is None:
                assert most < LEAST_SHARE + 1e-4
                continue
            assert word.cause.share == pytest.approx(most, abs=1e-4)
            assert word.cause.share == pytest.approx(shares[word.cause.start, word.cause.end], abs=1e-4)
            assert text[word.cause.start : word.cause.end] == word.cause.word
    assert shifted > 2


def test_a_planted_cause_is_found(monkeypatch):
    """Where the encoder says nothing but whether the text has "not", that word causes every shift, and nothing else."""
    planted = literal_model(shifting=False)
    with torch.no_grad():
        planted.context.layer.weight.fill_(1.0)
    negation = planted.tokenizer.convert_tokens_to_ids("not")

    def states(input_ids, *_):
        has_it = (input_ids == negation).any(1)
        return has_it[:, None, None].float().expand(*input_ids.shape, planted.backbone.encoder_width)

    monkeypatch.setattr(planted, "encoder_states", states)
    with_it, without = explain(planted, ["the plot is not a good film", "the plot is a good film"], causes=True)
    shifted = [word for word in with_it.words if word.context and word.word != "not"]
    assert shifted
    assert {(word.cause.word, word.cause.start, word.cause.share) for word in shifted} == {("not", 12, 1.0)}
    assert with_it.context_free_share < 1
    assert not any(word.context or word.cause for word in without.words)
    assert without.context_free_share == 1


def test_nothing_is_read_again_where_nothing_shifts_or_causes_are_not_wanted(model, monkeypatch):
    def refuse(*_):
        raise AssertionError("read again")

    monkeypatch.setattr(causes, "_without", refuse)
    explain(literal_model(shifting=False), TEXTS, causes=True)
    explain(model, TEXTS)
    predict(model, TEXTS)
    with pytest.raises(AssertionError, match="read again"):
        explain(model, TEXTS, causes=True)


def test_far_words_are_not_tried(model, monkeypatch):
    seen = []
    without = causes._without
    monkeypatch.setattr(causes, "NEAREST", 2)
    monkeypatch.setattr(causes, "_without", lambda *given: seen.append(given[1]) or without(*given))
    (why,) = explain(model, [TEXTS[0]], causes=True)
    shifted = sum(bool(word.context) for word in why.words)
    assert 0 < len(seen) <= 2 * shifted < NEAREST


def test_parts_and_bias_sum_to_the_decision(explained):
    for why in explained:
        parts = sum(word.default + word.context for word in why.words)
        assert parts + why.bias == pytest.approx(why.explained, abs=1e-5)


def test_a_repeated_word_stands_at_each_of_its_places():
    why = explain(literal_model(shifting=False), "good film, good plot")
    scores = {}
    for span in why.spans:
        scores.setdefault(span.text, []).append(span.score)
    contribution = next(word.contribution for word in why.words if word.word == "good")
    assert scores["good"] == pytest.approx([contribution / 2] * 2)
    assert sum(sum(own) for own in scores.values()) + why.bias == pytest.approx(why.explained)
