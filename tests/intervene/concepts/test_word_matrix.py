import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from lexical_sae.inference.predicting import predict
from lexical_sae.intervene import SuppressedModel, find_words
from lexical_sae.intervene.concepts.removals import Erasure, ZeroWords
from lexical_sae.intervene.concepts.study import words_for
from lexical_sae.intervene.concepts.word_matrix import EditedCodes, decider, read_texts
from lexical_sae.intervene.concepts.word_sets import (
    correlated_words,
    correlations,
    embedding_neighbours,
    inflections,
    random_words_of_equal_mass,
)
from tests import tiny

TEXTS = [*tiny.GOOD, *tiny.BAD, "", "the bank near the river has money"]


@pytest.fixture(scope="module")
def model():
    made = tiny.model()
    with torch.no_grad():
        made.backbone.decoder_bias.add_(2.0)
    return made


@pytest.fixture(scope="module")
def readings(model):
    return read_texts(model, TEXTS, [2], batch_size=3)


def names(model, ids) -> set[str]:
    return set(model.dimensions.names(ids))


def test_texts_are_read_in_their_order(model, readings):
    for row, text in enumerate(TEXTS):
        alone = read_texts(model, [text], [2])
        np.testing.assert_allclose(readings.codes[[row]].toarray(), alone.codes.toarray(), atol=1e-5)
        np.testing.assert_allclose(readings.contributions[[row]].toarray(), alone.contributions.toarray(), atol=1e-4)


def test_zeroed_words_decide_as_the_model_with_the_words_closed(model, readings):
    words = ["good", "film"]
    edit = ZeroWords.of(i for word in find_words(model, words) for i in word.dimensions)
    predictions = decider(model, [1, 2])(edit(readings.codes))
    closed = read_texts(SuppressedModel(model, words), TEXTS, [2]).codes
    expected = decider(model, [1, 2])(EditedCodes.untouched(closed))
    np.testing.assert_allclose(predictions.score, expected.score, atol=1e-5)
    before = decider(model, [1, 2])(EditedCodes.untouched(readings.codes))
    assert np.abs(predictions.score - before.score).max() > 1e-4


def test_answers_are_those_of_prediction(model, readings):
    predictions = decider(model, [1, 2])(EditedCodes.untouched(readings.codes))
    labels = model.labels["classify"]
    predicted = list(predict(model, TEXTS))
    assert [labels[i] for i in predictions.predicted] == predicted
    assert predictions.flagged.tolist() == [label != labels[0] for label in predicted]


def test_a_model_in_double_precision_decides_in_double_precision():
    double = tiny.model().double()
    codes = read_texts(double, TEXTS, [2]).codes
    nothing = np.zeros((codes.shape[1], 1))
    with torch.no_grad():
        expected = double.head()(torch.from_numpy(codes.toarray())).logits.softmax(-1)[:, 2]
    for edited in (EditedCodes.untouched(codes), Erasure(nothing[:, 0], nothing, nothing.T)(codes)):
        np.testing.assert_allclose(decider(double, [2])(edited).score, expected, rtol=0, atol=1e-12)


def test_directions_are_taken_out_before_the_head_reads(model, readings):
    rng = np.random.default_rng(0)
    size = readings.codes.shape[1]
    eraser = Erasure(rng.random(size), rng.random((size, 1)) / size, rng.random((1, size)))
    edited = eraser(readings.codes)
    dense = readings.codes.toarray()
    by_hand = dense - ((dense - eraser.mean) @ eraser.readings) @ eraser.directions
    np.testing.assert_allclose(edited.dense(np.arange(size)), by_hand, atol=1e-12)
    with torch.no_grad():
        logits = model.head()(torch.tensor(by_hand).float()).logits
    np.testing.assert_allclose(decider(model, [2])(edited).score, logits.softmax(-1)[:, 2].double(), atol=1e-5)


def test_an_empty_list_of_texts_is_refused(model):
    with pytest.raises(ValueError, match="no text to read"):
        read_texts(model, [], [0])


def test_inflections_share_a_stem(model):
    (church,) = find_words(model, "church")
    assert names(model, inflections(model, church.dimensions[:1])) == {"churches"}
    (play,) = find_words(model, "play")
    assert names(model, inflections(model, play.dimensions)) == set()


def test_neighbours_are_the_nearest_rows_of_the_decoder(model):
    (film,) = find_words(model, "movie")
    with torch.no_grad():
        rows = model.backbone.decoder.weight
        rows[find_words(model, "river")[0].dimensions[0]] = rows[film.dimensions[0]] + 0.01
    found = embedding_neighbours(model, film.dimensions, 1)
    assert names(model, found) == {"river"}
    assert not set(embedding_neighbours(model, film.dimensions, 3)) & set(film.dimensions)


def test_correlations_are_pearsons():
    rng = np.random.default_rng(0)
    dense = rng.random((50, 4)) * (rng.random((50, 4)) < 0.5)
    dense[:, 3] = 0
    concept = (rng.random(50) < 0.5).astype(float)
    expected = [np.corrcoef(dense[:, i], concept)[0, 1] for i in range(3)]
    np.testing.assert_allclose(correlations(csr_array(dense), concept), [*expected, 0], atol=1e-12)


def test_correlated_words_are_those_beyond_chance():
    rng = np.random.default_rng(0)
    dense = (rng.random((400, 60)) < 0.3).astype(float)
    concept = (rng.random(400) < 0.5).astype(float)
    assert correlated_words(csr_array(dense), concept, 10) == []
    dense[:, 7], dense[:, 9] = concept, 1 - concept
    assert set(correlated_words(csr_array(dense), concept, 10)) == {7, 9}
    assert len(correlated_words(csr_array(dense), concept, 1)) == 1


def test_random_words_have_the_mass_of_the_removed_ones():
    rng = np.random.default_rng(0)
    codes = csr_array(rng.random((30, 200)) * (rng.random((30, 200)) < 0.1))
    mass = np.asarray(codes.sum(axis=0)).ravel()
    drawn = random_words_of_equal_mass(codes, [3, 4, 5], seed=1)
    assert not {3, 4, 5} & set(drawn)
    assert mass[drawn].sum() == pytest.approx(mass[[3, 4, 5]].sum(), rel=0.1)
    assert mass[drawn].sum() <= mass[[3, 4, 5]].sum()
    assert drawn != random_words_of_equal_mass(codes, [3, 4, 5], seed=2)


def test_dimensions_become_words_that_a_lexicon_can_forbid(model):
    ids = [i for word in find_words(model, ["film", "##ing"]) for i in word.dimensions]
    assert words_for(model, ids) == ("film", "##ing")
