"""Few texts: a table that stays alone is fitted again on validation texts too; and classes may be weighed."""

import pytest
import torch

from lexical_sae.data import TextDataset, TextSplit
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.recipes import recipe_by_name
from lexical_sae.runs import in_memory
from lexical_sae.runs.in_memory import train_model
from lexical_sae.runs.joining import joined_texts
from lexical_sae.runs.seeds import Watchers
from lexical_sae.runs.weighting import with_class_weights
from lexical_sae.training.literal_vectors import default_activations
from tests import tiny
from tests.tiny import BAD, GOOD

TRAIN = TextSplit(tuple(GOOD + BAD) * 2, ((0,) * 4 + (1,) * 4) * 2)
VALIDATION = TextSplit(("a wonderful dog", "an awful dog", "a good film"), (0, 1, 0))


@pytest.fixture
def settings(tmp_path):
    recipe = recipe_by_name("anchored")
    model = recipe.model.model_copy(update={"name": str(tiny.saved_encoder(tmp_path / "encoder")), "context": None})
    return recipe.model_copy(update={"model": model})


def dataset(train=TRAIN, validation=VALIDATION, **others):
    return TextDataset("texts", ("good", "bad"), train, validation, TextSplit((), ()), **others)


def test_a_table_of_few_texts_knows_those_of_validation_too(settings, monkeypatch):
    told = []
    model, fitted = train_model(settings, dataset(), seed=0, device="cpu", watchers=Watchers(on_note=told.append))
    assert fitted.joined.texts == (*TRAIN.texts, "a wonderful dog", "an awful dog")
    assert told == ["texts are few: the table is fitted again, on all 18 of training and validation"]
    monkeypatch.setattr(in_memory, "FEW_TEXTS", 0)
    without, alone = train_model(settings, dataset(), seed=0, device="cpu")
    assert alone.joined is None
    assert not torch.equal(model.head().word_vectors, without.head().word_vectors)
    # Confidences were measured before these texts were learned from, and stay.
    assert model.calibration.figures == without.calibration.figures
    assert model.calibration.usual.known_words > without.calibration.usual.known_words
    assert not model.training


def test_the_joined_table_is_the_one_of_all_texts(settings):
    model, fitted = train_model(settings, dataset(), seed=0, device="cpu")
    again, _ = train_model(settings, dataset(fitted.joined, fitted.joined), seed=0, device="cpu")
    assert isinstance(model, LexicalSAE)
    torch.testing.assert_close(again.head().word_vectors, model.head().word_vectors)


def test_weights_of_joined_texts_go_with_them():
    assert joined_texts(dataset()).weights is None
    weighted = TextSplit(VALIDATION.texts, VALIDATION.labels, weights=(2.0, 3.0, 4.0))
    assert joined_texts(dataset(validation=weighted)).weights == (1.0,) * 16 + (2.0, 3.0)


def test_balanced_classes_count_the_same():
    train = TextSplit(tuple("abcdefgh"), (0,) * 6 + (1,) * 2)
    found = with_class_weights(dataset(train), "balanced")
    assert sum(found.train.weights[:6]) == pytest.approx(sum(found.train.weights[6:]))
    assert sum(found.train.weights) == pytest.approx(8)
    # A text of validation counts as its class does in training.
    assert found.validation.weights[1] == found.train.weights[6]


def test_classes_may_have_weights_of_their_own_and_those_of_texts_stay():
    train = TextSplit(tuple("abcd"), (0, 0, 1, 1), weights=(1.0, 3.0, 1.0, 1.0))
    weights = with_class_weights(dataset(train), {"bad": 3.0}).train.weights
    assert weights == pytest.approx((0.5, 1.5, 1.5, 1.5))
    assert with_class_weights(dataset(train), None).train is train


def test_a_class_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="class_weight names 'ugly', but the classes of texts are good, bad"):
        with_class_weights(dataset(), {"ugly": 2.0})


def test_class_weights_reach_the_table(settings):
    train = TextSplit((*GOOD, *BAD, *GOOD, *GOOD), (0,) * 4 + (1,) * 4 + (0,) * 8)
    biases = []
    for weight in (None, {"bad": 50.0}):
        asked = settings.model_copy(update={"training": settings.training.model_copy(update={"class_weight": weight})})
        model, _ = train_model(asked, dataset(train), seed=0, device="cpu")
        tokens = in_memory.documents(model, VALIDATION)
        shown = torch.from_numpy(default_activations(model, tokens.texts).toarray()).float()
        biases.append(model.head()(shown).logits.diff().mean().item())
    assert biases[1] > biases[0] + 0.1
