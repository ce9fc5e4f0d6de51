import pytest
import torch
from torch.nn.functional import cross_entropy

from lexical_sae.models.config import ModelConfig
from lexical_sae.training.loss.auxiliary_head import AuxiliaryHead
from tests import tiny


def samples():
    torch.manual_seed(0)
    states, words = torch.randn(6, 8, requires_grad=True), torch.randn(6, 3, requires_grad=True)
    return states, words, torch.tensor([0, 1, 2, 0, 1, 2])


def test_words_learn_from_the_auxiliary_head_and_it_does_not_learn_from_them():
    states, words, labels = samples()
    taught = {}
    for imitation in (0.0, 2.0):
        torch.manual_seed(1)
        auxiliary = AuxiliaryHead.Config(imitation=imitation, dropout=0.0).build(8, 3)
        auxiliary(states, words, labels).backward()
        taught[imitation] = (auxiliary.layer.weight.grad.clone(), states.grad.clone(), words.grad.clone())
        states.grad = words.grad = None
    assert torch.equal(taught[0.0][0], taught[2.0][0])
    assert torch.equal(taught[0.0][1], taught[2.0][1])
    assert taught[0.0][1].abs().min() > 0
    assert not taught[0.0][2].any()
    assert taught[2.0][2].abs().min() > 0


def test_what_it_adds_is_its_own_mistakes_and_the_words_distance_from_it():
    states, words, labels = samples()
    auxiliary = AuxiliaryHead.Config(weight=3.0, imitation=0.5, dropout=0.0).build(8, 3)
    logits = auxiliary.layer(states)
    apart = (logits.softmax(-1) * (logits.log_softmax(-1) - words.log_softmax(-1))).sum(-1).mean()
    own = cross_entropy(logits, labels, label_smoothing=0.1)
    torch.testing.assert_close(auxiliary(states, words, labels, 0.1), 3 * own + 0.5 * apart)
    torch.testing.assert_close(auxiliary(states, logits, labels), 3 * cross_entropy(logits, labels))


def test_dropout_hides_states_in_training_alone():
    states, words, labels = samples()
    auxiliary = AuxiliaryHead.Config(dropout=0.5).build(8, 3)
    assert auxiliary(states, words, labels) != auxiliary(states, words, labels)
    auxiliary.eval()
    assert auxiliary(states, words, labels) == auxiliary(states, words, labels)


@pytest.mark.parametrize("settings", [{}, {"pool": "attention"}, {"neighbourhood": {"words_per_token": 4}}], ids=str)
def test_states_that_are_there_already_give_the_same_words(settings):
    model = tiny.model(ModelConfig.model_validate({"gate": "drelu", **settings}))
    model.start_from_backbone()
    ids, mask = tiny.batch()
    with torch.no_grad():
        states = model.backbone.encoder_states(ids, mask)
        for route in (model.encode_document, model.encode):
            plain, given = route(ids, mask), route(ids, mask, states)
            torch.testing.assert_close(given.logits, plain.logits)
            changed = route(ids, mask, states + 1)
            assert not torch.equal(changed.logits, plain.logits)
