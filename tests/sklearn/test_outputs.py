"""Estimators on several labels per text, and on numbers."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.metrics import f1_score
from sklearn.model_selection import cross_val_score

from lexical_sae.sklearn import LexicalClassifier, LexicalRegressor
from lexical_sae.utils.errors import DataError, SettingsError
from tests.outputs.planted import PLANTED, labelled, numbered

LABELLED, HELD = labelled(160), labelled(60, seed=5)
MARKS = np.array(LABELLED.labels)
NUMBERED, NEW = numbered(160), numbered(60, seed=5)
TEXTS = list(LABELLED.texts)


@pytest.fixture(scope="module")
def classifier(encoder):
    frame = pd.DataFrame(MARKS, columns=list(PLANTED))
    return LexicalClassifier(encoder=encoder, context=False, random_state=0).fit(TEXTS, frame)


@pytest.fixture(scope="module")
def regressor(encoder):
    stars = pd.Series(NUMBERED.labels, name="stars")
    return LexicalRegressor(encoder=encoder, context=False, random_state=0).fit(list(NUMBERED.texts), stars)


def test_an_indicator_matrix_gives_one_back(classifier):
    decided = classifier.predict(list(HELD.texts))
    assert classifier.classes_.tolist() == list(PLANTED)
    assert decided.shape == (60, 3)
    assert f1_score(np.array(HELD.labels), decided, average="macro") > 0.95
    shares, margins = classifier.predict_proba(list(HELD.texts)), classifier.decision_function(list(HELD.texts))
    np.testing.assert_array_equal(decided, margins > 0)
    assert ((shares > 0) & (shares < 1)).all()
    assert classifier.score(list(HELD.texts), np.array(HELD.labels)) == np.mean((decided == HELD.labels).all(1))
    assert classifier.explain(HELD.texts[0], target="blame").target == "blame"
    assert classifier.lexicon().labels == tuple(PLANTED)


def test_arrays_lists_and_sparse_matrices_fit_alike(classifier):
    for y in (MARKS.tolist(), csr_matrix(MARKS)):
        other = clone(classifier).fit(TEXTS, y)
        assert other.classes_.tolist() == [0, 1, 2]
        np.testing.assert_array_equal(other.predict_proba(TEXTS), classifier.predict_proba(TEXTS))


def test_what_is_no_indicator_matrix_is_refused(classifier):
    with pytest.raises(DataError, match="not of 0 and 1"):
        clone(classifier).fit(TEXTS, MARKS * 2)
    with pytest.raises(SettingsError, match="class_weight is for one label per text"):
        clone(classifier).set_params(class_weight="balanced").fit(TEXTS, MARKS)


def test_a_weight_counts_a_text_so_often(classifier):
    weights = np.ones(len(TEXTS))
    weights[::2] = 0
    half = clone(classifier).fit(TEXTS, MARKS, sample_weight=weights)
    other = clone(classifier).fit(TEXTS[1::2], MARKS[1::2])
    np.testing.assert_allclose(half.predict_proba(TEXTS), other.predict_proba(TEXTS), atol=1e-6)


@pytest.mark.parametrize("name", ["classifier", "regressor"])
def test_estimators_are_kept(request, name, tmp_path):
    made, texts = request.getfixturevalue(name), list(HELD.texts)
    for other in (pickle.loads(pickle.dumps(made)), type(made).load(made.save(tmp_path / "model"))):
        np.testing.assert_array_equal(other.predict(texts), made.predict(texts))
        assert type(other) is type(made)


@pytest.mark.parametrize("name", ["classifier", "regressor"])
def test_a_report_shows_figures_and_texts(request, name, tmp_path):
    made, held = request.getfixturevalue(name), {"classifier": HELD, "regressor": NEW}[name]
    page = made.report(list(held.texts), list(held.labels), tmp_path / "page.html", examples=3).read_text()
    assert {"classifier": "macro F1", "regressor": "mean absolute error"}[name] in page


def test_numbers_are_predicted_and_explained(regressor):
    texts = list(NEW.texts)
    predicted = regressor.predict(texts)
    assert regressor.score(texts, NEW.labels) > 0.9
    why = regressor.explain(texts)
    np.testing.assert_allclose([one.explained for one in why], predicted, rtol=1e-6)
    np.testing.assert_allclose([one.bias + sum(w.contribution for w in one.words) for one in why], predicted, rtol=1e-5)
    assert why[0].target == "stars"
    assert cross_val_score(clone(regressor), list(NUMBERED.texts), NUMBERED.labels, cv=2).min() > 0.8


def test_a_regressor_refuses_names_and_a_classifiers_model(regressor, classifier, tmp_path):
    with pytest.raises(DataError, match="for names of classes use LexicalClassifier"):
        clone(regressor).fit(["a film", "a plot"], ["good", "bad"])
    with pytest.raises(DataError, match="NaN"):
        clone(regressor).fit(["a film", "a plot"], [1.0, float("nan")])
    with pytest.raises(ValueError, match="LexicalClassifier"):
        LexicalRegressor.load(classifier.save(tmp_path / "model"))
    with pytest.raises(ValueError, match="LexicalClassifier"):
        LexicalRegressor.from_model(classifier.model_).predict(TEXTS)
