from collections import Counter

import pytest
import torch

from lexical_sae.models.layers.cut_words import NO_WORD
from lexical_sae.models.literal_reading import read_words
from lexical_sae.training.loss import independence
from lexical_sae.training.loss.independence import Independence, change_of_others
from lexical_sae.training.samples import ReadTokens
from lexical_sae.training.steps import encoder_parameters
from tests.literal import TEXTS, batch_of, literal_model


def swayed_model():
    """One whose words depend on one another much."""
    model = literal_model()
    with torch.no_grad():
        model.context.layer.weight.mul_(20)
    return model


def change(model, *texts):
    return change_of_others(model, read(model, *texts)).item()


def read(model, *texts):
    ids, mask = batch_of(model, *texts)
    return ReadTokens(ids, mask.bool(), model.encoder_states(ids, mask))


def dimension(model, word):
    return next(i for i, own in enumerate(model.dimensions) if own.name == word)


def mean_change(model):
    """Over enough draws of the masked words to tell more from less."""
    return sum(change(model, *TEXTS) for _ in range(10)) / 10


def masking(monkeypatch, model, *words):
    """Leave nothing to chance: these words are masked."""
    chosen = torch.tensor([NO_WORD if word is None else dimension(model, word) for word in words])
    monkeypatch.setattr(independence, "_top_words", lambda *_: chosen)


def slow_change(model, text, word):
    """From two readings of the text by name, the second with the word's tokens replaced one by one."""
    ids, mask = batch_of(model, text)
    tokens, masked = model.tokenizer.convert_ids_to_tokens(ids[0].tolist()), ids.clone()
    pieces = model.tokenizer.tokenize(word)
    for at in range(len(tokens)):
        if tokens[at : at + len(pieces)] == pieces:
            masked[0, at : at + len(pieces)] = model.tokenizer.mask_token_id
    assert not masked.equal(ids)
    sums = []
    for given in (ids, masked):
        found = read_words(model, ids, mask.bool(), model.encoder_states(given, mask))
        sums.append(Counter())
        for place, own, activation in zip(found.positions, found.words, found.activations, strict=True):
            sums[-1][int(place), int(own)] = (activation * model.context.size[own]).item()
    return sum(abs(sums[0][key] - sums[1][key]) for key in sums[0] if key[1] != dimension(model, word))


@pytest.mark.parametrize(("text", "word"), [(TEXTS[0], "badly"), (TEXTS[1], "good"), (TEXTS[3], "boring")])
def test_it_is_the_sum_of_what_changes_at_the_other_words(monkeypatch, text, word):
    model = swayed_model()
    masking(monkeypatch, model, word)
    expected = slow_change(model, text, word)
    assert change(model, text) == pytest.approx(expected, rel=1e-4)


def test_texts_count_the_same_and_one_without_words_adds_nothing(monkeypatch):
    model = swayed_model()
    words = ("badly", None, "boring")
    masking(monkeypatch, model, *words)
    found = change(model, TEXTS[0], TEXTS[4], TEXTS[3])
    expected = (slow_change(model, TEXTS[0], "badly") + slow_change(model, TEXTS[3], "boring")) / 3
    assert expected > 0.01
    assert found == pytest.approx(expected, rel=1e-4)


def test_a_model_whose_context_shifts_nothing_has_nothing_to_lose():
    model = literal_model(shifting=False)
    assert change(model, *TEXTS) == 0


def test_its_gradient_reaches_encoder_and_shifts():
    model = swayed_model()
    torch.manual_seed(0)
    change_of_others(model, read(model, *TEXTS)).backward()
    assert model.context.layer.weight.grad.abs().max() > 0
    assert max(p.grad.abs().max() for p in encoder_parameters(model) if p.grad is not None) > 0


def test_descending_it_makes_words_independent():
    model = swayed_model()
    torch.manual_seed(0)
    optimizer = torch.optim.SGD([model.context.layer.weight], lr=3e-2)
    before = mean_change(model)
    for _ in range(30):
        optimizer.zero_grad()
        change_of_others(model, read(model, *TEXTS)).backward()
        optimizer.step()
    assert mean_change(model) < 0.5 * before


def test_the_word_that_carries_most_is_masked():
    model = literal_model()
    ids, mask = batch_of(model, TEXTS[0], TEXTS[3])
    found = read_words(model, ids, mask.bool(), None)
    weights = torch.zeros(len(found.words))
    weights[1], weights[2] = 1.0, 3.0
    assert found.rows[:3].eq(0).all()
    assert independence._top_words(found, weights, 2).tolist() == [int(found.words[2]), NO_WORD]


def noted(monkeypatch):
    """The token ids that are masked in, step by step."""
    seen = []

    def note(_, tokens):
        seen.append(tokens.input_ids)
        return torch.tensor(1.0)

    monkeypatch.setattr(independence, "change_of_others", note)
    return seen


def test_texts_are_sampled_and_the_weight_counts(monkeypatch):
    model, seen = literal_model(), noted(monkeypatch)
    is_made = torch.zeros(len(TEXTS), dtype=torch.bool)
    assert float(Independence.Config(weight=2.5, share=0.4).build()(model, read(model, *TEXTS), is_made)) == 2.5
    assert [len(ids) for ids in seen] == [2]


def test_sentences_that_teach_context_are_left_alone(monkeypatch):
    model, seen = literal_model(), noted(monkeypatch)
    tokens = read(model, *TEXTS)
    is_made = torch.ones(len(TEXTS), dtype=torch.bool)
    asked = Independence.Config(share=1.0).build()
    assert float(asked(model, tokens, is_made)) == 0
    assert not seen
    is_made[3] = False
    assert float(asked(model, tokens, is_made)) > 0
    assert [ids.tolist() for ids in seen] == [tokens.input_ids[3:4].tolist()]
