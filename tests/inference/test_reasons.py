import copy
from itertools import chain, combinations

import pytest
import torch

from lexical_sae.inference import explain, find_reasons
from lexical_sae.inference.tag_explaining import explain_tags
from lexical_sae.models.config import ModelConfig
from tests import tiny
from tests.literal import literal_model

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


def label_with(model, kept, name="classify"):
    """The label that a head gives to (dimension, strength) pairs."""
    head = model.head(name)
    vector = torch.zeros(len(model.dimensions), dtype=torch.float64)
    for dimension, activation in kept:
        vector[dimension] = activation
    hidden = (vector @ head.word_vectors.double() + head.hidden_bias.double()).relu()
    logits = hidden @ head.class_weights.double().T + head.class_bias.double()
    return model.labels[name][int(logits.argmax())]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("to", [None, "other"])
def test_the_smallest_sets_are_those_of_exhaustive_search(model, text, to):
    why = explain(model, text)
    to = to and next(label for label, _ in why.probabilities if label != why.label)
    found = find_reasons(model, text, to)
    place = {model.dimensions[i].name: i for i in range(len(model.dimensions))}
    words = [(place[word.word], word.activation) for word in why.words]
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


@pytest.fixture(scope="module")
def tagger():
    """The same with shape features, and a head that is not sure of `O`."""
    made = tiny.model(ModelConfig.model_validate({"gate": "drelu", "shapes": {}}))
    with torch.no_grad():
        made.head("tag").hidden_bias.normal_(std=0.05)
    closed = torch.ones(len(made.dimensions), dtype=torch.bool)
    closed[20:28] = False
    closed[made.shapes.first :] = False
    made.gate.close(closed)
    return made


@pytest.mark.parametrize("word", range(5))
@pytest.mark.parametrize("to", [None, "I-PER"])
def test_what_a_tag_hangs_on_is_what_exhaustive_search_finds(tagger, word, to):
    sentence = ["The", "Muslim", "BANK", "was", "boring"]
    (why,) = explain_tags(tagger, sentence, [word])
    if why.label == to:
        with pytest.raises(ValueError, match=f"'{sentence[word]}' already gets the label"):
            find_reasons(tagger, sentence, to, word=word)
        return
    found = find_reasons(tagger, sentence, to, word=word)
    place = {tagger.dimensions[i].name: i for i in range(len(tagger.dimensions))}
    words = {one.word: (place[one.word], one.activation) for one in why.words}
    assert (found.label, found.num_words, found.to) == (why.label, len(words), to)
    assert found.probability == pytest.approx(why.probability, abs=1e-5)
    subsets = list(chain.from_iterable(combinations(words, size) for size in range(len(words) + 1)))

    def label_of(kept):
        return label_with(tagger, [words[one] for one in kept], "tag")

    wanted = {to} if to else set(tagger.labels["tag"]) - {why.label}
    flips = [len(s) for s in subsets if label_of(set(words) - set(s)) in wanted]
    if flips:
        assert found.flip.is_minimal
        assert len(found.flip.words) == min(flips)
        assert label_of(set(words) - set(found.flip.words)) == found.flip.label
    else:
        assert found.flip.is_impossible
    assert len(found.enough.words) == min(len(s) for s in subsets if label_of(s) == why.label)


def test_a_tag_that_only_a_capital_gives_hangs_on_it(tagger):
    made = copy.deepcopy(tagger)
    head = made.head("tag")
    at = next(i for i in range(len(made.dimensions)) if made.dimensions[i].name == "is capitalised")
    with torch.no_grad():
        head.word_vectors[at] = 50 * (head.class_weights[3] - head.class_weights[0])
    found = find_reasons(made, "Bank", word=0)
    assert found.label == "B-LOC"
    assert found.flip.words == ("is capitalised",)
    assert found.flip.is_minimal
    assert "is capitalised" not in find_reasons(made, "bank", word=0).flip.words


def test_a_word_that_is_not_there_or_cannot_be_read_has_no_reasons(tagger):
    with pytest.raises(ValueError, match="there is no word 3; the sentence has 2 words"):
        find_reasons(tagger, "good film", word=3)
    with pytest.raises(ValueError, match="tokenises to nothing"):
        find_reasons(tagger, ["\u200b", "film"], word=0)
    with pytest.raises(ValueError, match="to 'B-ORG' is not a label"):
        find_reasons(tagger, "good film", "B-ORG", word=0)


def logits_without(model, text, removed):
    """Logits of a literal model without the words that a function of their names takes out."""
    why = explain(model, text)
    place = {model.dimensions[i].name: i for i in range(len(model.dimensions))}
    kept = [word for word in why.words if word.word not in removed]
    rows = model.head().word_vectors.double()
    return model.head().class_bias.double() + sum((w.activation * rows[place[w.word]] for w in kept), start=0 * rows[0])


def test_a_word_counts_once_however_often_it_is_written():
    model = literal_model()
    once, thrice = (find_reasons(model, text) for text in ("good film", "good Good film, GOOD film"))
    assert once.num_words == thrice.num_words == 2
    for found in (thrice.flip.words or (), thrice.enough.words or ()):
        assert len(found) == len(set(found))


def test_forms_of_a_word_count_once_and_go_together():
    model, text = literal_model(shifting=False), "the film and films of a good city and boring cities"
    place = {model.dimensions[i].name: i for i in range(len(model.dimensions))}
    with torch.no_grad():
        model.head().word_vectors.mul_(0.1)
        for word, weight in (("film", 1.0), ("films", 1.0), ("good", -0.8), ("city", -0.4), ("cities", -0.4)):
            model.head().word_vectors[place[word]] = weight * torch.tensor([1.0, 0.0, -1.0])
    alone, merged = (find_reasons(model, text, merge_inflections=option) for option in (False, True))
    assert alone.num_words - merged.num_words == 2
    groups = [name.split("/") for name in merged.flip.words]
    left = logits_without(model, text, {form for group in groups for form in group})
    assert model.labels["classify"][int(left.argmax())] == merged.flip.label != merged.label
    assert len(merged.flip.words) <= len(alone.flip.words)
    assert merged.flip.words == ("film/films",)
