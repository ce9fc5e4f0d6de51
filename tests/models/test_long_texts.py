"""Windows of long texts: every token has one state, that of the window in which it stands furthest from a cut."""

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from lexical_sae.data.encoding import special_tokens_around
from lexical_sae.models import long_texts
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.long_texts import Windows, longest, stretches, windows_of
from lexical_sae.models.persistence import digest, from_pretrained, save_pretrained
from lexical_sae.models.word_views import cut_to_window
from lexical_sae.recipes import recipe_by_name
from tests import tiny
from tests.literal import TEXTS, batch_of, literal_model

LONG = "a badly filmed plot , not a good film . the dogs play near the bank and money is not happy ! very boring church"


def whole_model(**others) -> LexicalSAE:
    return literal_model(max_length=10, **others)


@given(tokens=st.integers(1, 200), room=st.integers(1, 40))
def test_every_token_is_given_once_by_a_window_that_reads_it(tokens, room):
    parts = stretches(tokens, room)
    given_tokens = [token for part in parts for token in range(part.gives_from, part.gives_to)]
    assert given_tokens == list(range(tokens))
    for part in parts:
        assert part.start <= part.gives_from <= part.gives_to <= part.stop <= tokens
        assert part.stop - part.start == min(room, tokens)


def test_a_token_is_given_by_the_window_in_which_it_stands_furthest_from_a_cut():
    tokens, room = 61, 16
    parts = stretches(tokens, room)

    def from_cut(part, token):
        left = token - part.start if part.start else tokens
        right = part.stop - 1 - token if part.stop < tokens else tokens
        return min(left, right)

    for part in parts:
        for token in range(part.gives_from, part.gives_to):
            best = max(from_cut(other, token) for other in parts if other.start <= token < other.stop)
            assert from_cut(part, token) == best


def test_a_word_is_given_by_one_window():
    first, second = stretches(14, 10, begins=[0, 3, 6, 9])[:2]
    assert (first.gives_to, second.gives_from) == (9, 9)
    # A word without an end in the overlap is cut.
    assert stretches(14, 10, begins=[0])[0].gives_to == stretches(14, 10)[0].gives_to


@given(window=st.integers(3, 60), most=st.integers(1, 9))
def test_the_longest_text_takes_as_many_windows_as_it_may(window, most):
    room = window - 2
    assert len(stretches(longest(window, 2, most) - 2, room)) == most
    assert len(stretches(longest(window, 2, most) - 1, room)) == most + 1


def slow_states(model, ids, mask):
    """Each window read alone, without padding."""
    windows = windows_of(model, ids, mask)
    found = torch.full((*ids.shape, model.backbone.encoder_width), torch.nan)
    for row, columns, real, gives in zip(*windows, strict=True):
        own = ids[row, columns[real]][None]
        states = model.backbone.encoder_states(own, torch.ones_like(own, dtype=torch.bool))[0]
        found[row, columns[real][gives[real]]] = states[gives[real]]
    return found


@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_states_are_those_of_windows_read_alone(monkeypatch, at_once):
    monkeypatch.setattr(long_texts, "WINDOWS_AT_ONCE", at_once)
    model = whole_model()
    ids, mask = batch_of(model, LONG, TEXTS[1], f"{LONG} {LONG}")
    with torch.no_grad():
        found, slow = model.encoder_states(ids, mask), slow_states(model, ids, mask)
    assert len(windows_of(model, ids, mask).rows) > 6
    assert torch.allclose(found[mask], slow[mask], atol=1e-5)
    # Padding has no state, and special tokens have that of the first and the last window.
    assert slow[~mask].isnan().all()
    assert slow[mask].isfinite().all()


def test_padding_on_the_left_changes_nothing():
    model = whole_model()
    ids, mask = batch_of(model, LONG, TEXTS[0])
    gap = (~mask[1]).sum()
    rolled = torch.stack([ids[0], ids[1].roll(int(gap))]), torch.stack([mask[0], mask[1].roll(int(gap))])
    with torch.no_grad():
        right, left = model.encoder_states(ids, mask), model.encoder_states(*rolled)
    assert torch.allclose(right[mask], left[rolled[1]], atol=1e-6)


def test_gradients_reach_the_encoder_through_every_window():
    model = whole_model()
    ids, mask = batch_of(model, LONG)
    model.encoder_states(ids, mask).square().sum().backward()
    position = model.backbone.encoder.embeddings.position_embeddings.weight.grad
    assert (position[: model.window].abs().sum(1) > 0).all()
    assert (position[model.window :] == 0).all()


def test_a_text_of_one_window_is_read_as_ever():
    """Bitwise, alone and in a batch of such texts, by a model that cuts and by one that reads whole."""
    whole, cut = literal_model(max_length=24), literal_model(max_length=24, long_texts="cut")
    ids, mask = batch_of(whole, *TEXTS)
    assert windows_of(whole, ids, mask) is None
    a, b = whole.encode_document(ids, mask).sparse_vector, cut.encode_document(ids, mask).sparse_vector
    assert torch.equal(a, b)


def test_at_most_so_many_windows_of_each_text_are_sampled():
    model = whole_model()
    ids, mask = batch_of(model, LONG, TEXTS[1], f"{LONG} {LONG}")
    windows = windows_of(model, ids, mask)
    torch.manual_seed(0)
    drawn = {tuple(windows.sample(2).columns[-1].tolist()) for _ in range(30)}
    assert len(drawn) > 1
    some = windows.sample(2)
    assert torch.bincount(some.rows).tolist() == [2, 1, 2]
    read = some.is_read(mask)
    assert read[1].equal(mask[1])
    assert 0 < read[0].sum() < mask[0].sum()
    states = model.encoder_states(ids, mask, windows=some)
    assert torch.allclose(states[read], model.encoder_states(ids, mask)[read], atol=1e-6)
    assert (states[~read] == 0).all()
    everything = windows.sample(len(windows.rows))
    assert everything.is_read(mask).equal(mask)


def test_windows_of_some_texts_are_those_of_a_batch_of_them():
    model = whole_model()
    ids, mask = batch_of(model, LONG, TEXTS[1], f"{LONG} {LONG}")
    some = torch.tensor([2, 0])
    of_some, alone = windows_of(model, ids, mask).of_texts(some), windows_of(model, ids[some], mask[some])
    assert all(one.equal(other) for one, other in zip(of_some, alone, strict=True))


def test_words_outside_of_what_was_read_keep_their_default():
    model = whole_model()
    ids, mask = batch_of(model, f"{LONG} {LONG}")
    windows = windows_of(model, ids, mask)
    first = Windows(*(part[:1] for part in windows))
    states, read = model.encoder_states(ids, mask, windows=first), first.is_read(mask)
    part = model.encode_document(ids, mask, states, is_read=read)
    nothing = model.encode_document(ids, mask, states, is_read=torch.zeros_like(read))
    whole = model.encode_document(ids, mask)
    shifted = [int((one.gate.gate_mask > 0.5).sum()) for one in (nothing, part, whole)]
    assert shifted[0] == 0 < shifted[1] < shifted[2]


@pytest.mark.parametrize("family", ["roberta", "modernbert", "distilbert", "deberta-v2", "electra", "albert"])
def test_every_family_reads_windows(family):
    settings = recipe_by_name("anchored").model.model_dump() | {"max_length": 10}
    model = tiny.model(ModelConfig.model_validate(settings), family)
    ids, mask = batch_of(model, LONG, TEXTS[1])
    with torch.no_grad():
        found, slow = model.encoder_states(ids, mask), slow_states(model, ids, mask)
    assert torch.allclose(found[mask], slow[mask], atol=1e-5)


def test_special_tokens_are_counted_on_both_sides():
    assert special_tokens_around(tiny.wordpiece()) == (1, 1)


def test_words_from_logits_are_not_read_in_windows():
    with pytest.raises(ValidationError, match="long_texts"):
        ModelConfig(long_texts="whole")


def test_the_default_recipe_reads_whole_and_older_settings_cut():
    assert recipe_by_name("anchored").model.long_texts == "whole"
    assert ModelConfig().long_texts == "cut"
    model = literal_model(long_texts="cut", max_length=10)
    assert model.max_length == model.window == 10


def test_a_model_saved_before_there_were_windows_reads_as_it_did(tmp_path):
    model = whole_model()
    del model.heads["tag"], model.labels["tag"]
    save_pretrained(model, tmp_path / "model")
    whole = from_pretrained(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    saved = json.loads(path.read_text())
    del saved["parts"]["long_texts"], saved["parts"]["most_windows"], saved["parts"]["head"]["least_certainty"]
    path.write_text(json.dumps(saved | {"own_sha256": digest(saved)}))
    older = from_pretrained(tmp_path / "model")
    assert older.config.long_texts == "cut"
    ids, mask = batch_of(older, LONG, TEXTS[1])
    assert ids.shape[1] == older.window
    assert torch.equal(
        older.encode_document(ids, mask).sparse_vector, cut_to_window(model).encode_document(ids, mask).sparse_vector
    )
    assert batch_of(whole, LONG)[0].shape[1] > whole.window
