import json

import pytest
import torch

from lexical_sae.data.tagging import entity_spans, repair_iob2
from lexical_sae.explanation import Explanation
from lexical_sae.inference.tag_explaining import SHAPES_IN_ENCODER, explain_tags, find_word
from lexical_sae.inference.tagging import tag
from lexical_sae.inference.word_decisions import read_words, words_of
from lexical_sae.intervene import SuppressedModel
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.lexical_sae import TAG, LexicalSAE
from tests import tiny

TEXT = "The Muslim bank was NOT in a good city, playing 3 dogs."
NOTHING = "\u200b"


@pytest.fixture(scope="module")
def model():
    return tiny.model(ModelConfig.model_validate({"gate": "drelu", "shapes": {}}))


def logits_of(model, words):
    rows = words_of(model, [words])
    found = {
        place: row
        for read in read_words(model, [words], rows)
        for place, row in zip(read.places, read.state.logits, strict=True)
    }
    return {word: row for (_, word), row in found.items()}


def test_tags_are_valid_and_do_not_depend_on_the_batch(model):
    texts = [TEXT, "Dogs play", "", "a " * 300, ["New York", "is", NOTHING, "good"]]
    found = tag(model, texts)
    assert all(repair_iob2(sentence.tags) == list(sentence.tags) for sentence in found)
    assert [len(sentence.tags) for sentence in found] == [14, 2, 0, 300, 4]
    for text, sentence in zip(texts, found, strict=True):
        assert tag(model, [text], batch_size=1)[0] == sentence
    assert tag(model, TEXT) == found[0]
    assert list(found[0].entities) == entity_spans(found[0].tags)


def test_case_decides_through_shapes_alone(model):
    assert torch.equal(*(logits_of(tiny.model(), words)[1] for words in (["the", "bank"], ["the", "Bank"])))
    assert not torch.allclose(*(logits_of(model, words)[1] for words in (["the", "bank"], ["the", "Bank"])))


@pytest.mark.parametrize("method", ["dla", "path", "leave_one_out"])
def test_contributions_sum_to_the_difference_of_two_tags(model, method):
    words = tag(model, TEXT).words
    (why,) = explain_tags(model, TEXT, [1], target="B-PER", contrast="B-LOC", method=method)
    logits = logits_of(model, words)[1]
    names = model.labels[TAG]
    wanted = (logits[names.index("B-PER")] - logits[names.index("B-LOC")]).item()
    assert sum(word.contribution for word in why.words) + why.bias == pytest.approx(wanted, abs=1e-4)
    assert why.explained == pytest.approx(wanted, abs=1e-5)
    assert why.label == names[int(logits.argmax())]
    assert why.text[slice(why.words[0].start, why.words[0].end)] == "Muslim"


def test_without_it_is_what_removing_the_dimension_does(model):
    (why,) = explain_tags(model, TEXT, [1], target="B-PER", contrast="O")
    assert {word.kind for word in why.words} == {"word", "shape", "piece"}
    rows = words_of(model, [tag(model, TEXT).words])
    (read,) = read_words(model, [tag(model, TEXT).words], rows, only={(0, 1)})
    dense = read.state.code.dense().double()
    head = model.head(TAG).double()
    before = head(dense).logits[0]
    for word in why.words:
        (at,) = [i for i in read.state.code.ids.tolist() if model.dimensions[i].name == word.word]
        after = head(dense.index_fill(1, torch.tensor([at]), 0.0)).logits[0]
        fall = (before - after)[1] - (before - after)[0]
        assert word.if_removed == pytest.approx(-fall.item(), abs=1e-4)
        assert word.label_if_removed == model.labels[TAG][int(after.argmax())]
    head.float()


def test_an_explanation_says_that_shapes_are_no_words(model):
    (why,) = explain_tags(model, ["Bank", "film"], [0])
    named = {word.word: word for word in why.words if word.kind == "shape"}
    assert set(named) == {"is capitalised", "opens the sentence"}
    assert not any(word.is_expansion for word in named.values())
    assert any("is capitalised" in line and "letters" in line for line in why.not_explained)
    assert not any(SHAPES_IN_ENCODER in line for line in why.not_explained)
    with_shapes = tiny.model(ModelConfig.model_validate({"gate": "drelu", "shapes": {"in_encoder": True}}))
    nothing_shown = SuppressedModel(with_shapes, [*with_shapes.shapes.config.names])
    for model, word in ((with_shapes, 0), (with_shapes, 1), (nothing_shown, 0)):
        assert any(SHAPES_IN_ENCODER in line for line in explain_tags(model, ["Bank", "film"], [word])[0].not_explained)
    assert {w.word: w.is_expansion for w in why.words}.get("bank", False) is False
    assert Explanation.from_json(why.to_json()) == Explanation(**vars(why.listed()))
    json.loads(why.to_json())


def test_by_default_every_entity_is_explained(model):
    tagged = tag(model, TEXT)
    found = explain_tags(model, TEXT)
    assert [why.words[0].start for why in found if why.words] == [
        tagged.characters(entity)[0] for entity in tagged.entities
    ]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: explain_tags(model, TEXT, [99]), "there is no word 99; the sentence has 14"),
        (lambda model: explain_tags(model, TEXT, [0], contrast="B-ORG"), "contrast 'B-ORG' is not a label"),
        (lambda model: explain_tags(model, TEXT, [0], target="O", contrast="O"), "both 'O'"),
        (lambda model: explain_tags(model, [NOTHING, "film"], [0]), "tokenises to nothing"),
        (lambda model: tag(model, [3]), "sentence 0 is int"),
        (lambda model: tag(model, [["a", None]]), "words must be strings"),
        (lambda model: find_word(tag(model, TEXT), "Paris"), "'Paris' is no word of the sentence"),
    ],
)
def test_what_cannot_be_answered_is_refused(model, call, message):
    with pytest.raises(ValueError, match=message):
        call(model)


def test_a_model_without_tags_is_named():
    classifier = LexicalSAE(ModelConfig(gate="drelu"), tiny.backbone(), {"classify": ["a", "b"]}).eval()
    with pytest.raises(ValueError, match="no head 'tag'"):
        tag(classifier, TEXT)
