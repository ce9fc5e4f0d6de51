from itertools import chain, combinations

import pytest
import torch

from splade.inference import explain, find_reasons
from splade.models.config import ModelConfig
from tests import tiny

TEXTS = ["a good film", "boring", "happy dogs play"]


@pytest.fixture(scope="module")
def model():
    """A tiny model in which few words are open, so that all sets of them can be tried."""
    made = tiny.model()
    with torch.no_grad():
        made.head().hidden_bias.normal_(std=0.05)
    closed = torch.ones(len(made.dimensions), dtype=torch.bool)
    closed[20:30] = False
    made.gate.close(closed)
    return made


def label_with(model, kept):
    """The label that the head gives to (dimension, strength) pairs."""
    head = model.head()
    vector = torch.zeros(len(model.dimensions), dtype=torch.float64)
    for dimension, strength in kept:
        vector[dimension] = strength
    hidden = (vector @ head.word_vectors.double() + head.hidden_bias.double()).relu()
    logits = hidden @ head.class_weights.double().T + head.class_bias.double()
    return model.labels["classify"][int(logits.argmax())]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("to", [None, "other"])
def test_the_smallest_sets_are_those_of_exhaustive_search(model, text, to):
    why = explain(model, text)
    to = to and next(label for label, _ in why.probabilities if label != why.label)
    found = find_reasons(model, text, to)
    place = {model.dimensions[i].name: i for i in range(len(model.dimensions))}
    words = [(place[word.word], word.strength) for word in why.words]
    names = dict(zip([word.word for word in why.words], words, strict=True))
    assert found.num_words == len(words) > 2
    assert found.label == why.label
    assert found.to == to
    subsets = list(chain.from_iterable(combinations(words, size) for size in range(len(words) + 1)))
    wanted = {to} if to else {label for label, _ in why.probabilities} - {why.label}
    flips = [len(s) for s in subsets if label_with(model, set(words) - set(s)) in wanted]
    enough = [len(s) for s in subsets if label_with(model, s) == why.label]
    if flips:
        assert found.flip.is_minimal
        assert len(found.flip.words) == found.flip.at_least == min(flips)
        assert label_with(model, set(words) - {names[word] for word in found.flip.words}) == found.flip.label
    else:
        assert found.flip.is_impossible
        assert found.flip.words is None
    assert len(found.enough.words) == min(enough)
    assert label_with(model, [names[word] for word in found.enough.words]) == why.label


def test_a_search_that_stops_early_claims_no_more_than_it_proved(model):
    full = find_reasons(model, TEXTS[0])
    stopped = find_reasons(model, TEXTS[0], max_nodes=1)
    assert stopped.flip.at_least <= full.flip.at_least
    assert stopped.flip.is_minimal == (
        stopped.flip.words is not None and len(stopped.flip.words) == stopped.flip.at_least
    )


def test_a_text_without_words_hangs_on_nothing():
    closed = tiny.model()
    closed.gate.close(torch.ones(len(closed.dimensions), dtype=torch.bool))
    found = find_reasons(closed, "good")
    assert found.num_words == 0
    assert found.flip.is_impossible
    assert found.enough.words == ()


def test_what_cannot_be_asked_is_refused(model):
    label = explain(model, "good").label
    with pytest.raises(ValueError, match=f"already gets the label '{label}'"):
        find_reasons(model, "good", to=label)
    with pytest.raises(ValueError, match="to 'nonsense' is not a label"):
        find_reasons(model, "good", to="nonsense")
    with pytest.raises(ValueError, match="one text at a time"):
        find_reasons(model, ["good"])
    with pytest.raises(ValueError, match="BcosHead is not piecewise linear"):
        find_reasons(tiny.model(ModelConfig(gate="drelu", head="bcos")), "good")
