"""A tagger: the same sparse words as a classifier's, at every position."""

import pytest
import torch

from lexical_sae.intervene import SuppressedModel
from lexical_sae.mechanistic.attribution import compute_attribution_tensor
from tests import tiny


@pytest.fixture(scope="module")
def model():
    return tiny.model()


@pytest.fixture(scope="module")
def sequence(model):
    ids, mask = tiny.batch()
    with torch.no_grad():
        return model(ids, mask)


def test_a_sequence_holds_words_at_every_position_and_none_at_padding(model, sequence):
    _, mask = tiny.batch()
    assert sequence.shape == (*mask.shape, len(model.dimensions))
    assert (sequence >= 0).all()
    assert (sequence[mask] > 0).any(-1).all()
    assert (sequence[~mask] == 0).all()


def test_every_position_has_a_logit_per_tag(model, sequence):
    with torch.no_grad():
        assert model.tag(sequence).shape == (*sequence.shape[:2], len(model.labels["tag"]))


def test_contributions_at_every_position_sum_to_its_tag_logits():
    model, (ids, mask) = tiny.model().double(), tiny.batch()
    with torch.no_grad():
        state = model.tag_state(model(ids, mask), mask)
    for tag in range(state.logits.shape[-1]):
        chosen = torch.full((len(state.logits),), tag)
        contributions = compute_attribution_tensor(state.sparse_vector, state.W_eff, chosen)
        torch.testing.assert_close(contributions.sum(-1) + state.b_eff[:, tag], state.logits[:, tag])


def test_tags_of_a_position_depend_on_its_own_words_alone(model, sequence):
    changed = sequence.clone()
    changed[:, 0] = 0
    with torch.no_grad():
        torch.testing.assert_close(model.tag(changed)[:, 1:], model.tag(sequence)[:, 1:])


def test_a_suppressed_word_is_zero_at_every_position(model, sequence):
    word = int(sequence.sum((0, 1)).argmax())
    with torch.no_grad():
        without = SuppressedModel(model, [word])(*tiny.batch())
    assert (sequence[..., word] > 0).any()
    assert (without[..., word] == 0).all()
