import os

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from lexical_sae import inference
from lexical_sae.config.load import build_config
from lexical_sae.runs.experiment import setup_and_train
from lexical_sae.sklearn import LexicalClassifier
from tests.sklearn.reviews import LABELS, TEXTS

NEW = ["a good film", "boring acting and a terrible plot", "the river was unseenly good", ""]


def weights(estimator):
    return estimator.model_.state_dict()


def assert_same_weights(one, other):
    assert weights(one).keys() == weights(other).keys()
    assert all(torch.equal(value, weights(other)[name]) for name, value in weights(one).items())


# As the command line


@pytest.mark.parametrize("context", [False, True])
def test_weights_are_bitwise_those_of_the_command_line(encoder, tmp_path, context):
    for name, rows in (("train", range(64)), ("test", range(4))):
        lines = [f'"{TEXTS[row]}",{LABELS[row]}' for row in rows]
        (tmp_path / f"{name}.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    model = {"name": encoder, **({} if context else {"context": None})}
    config = build_config({"data": {"dataset_name": str(tmp_path)}, "model": model, "seed": 3})
    expected = setup_and_train(config, "cpu").model.state_dict()
    clf = LexicalClassifier(encoder=encoder, context=context, random_state=3, device="cpu").fit(TEXTS, LABELS)
    assert all(torch.equal(value, expected[name]) for name, value in weights(clf).items())
    assert clf.model_.calibration is not None


def test_the_answers_are_those_of_the_library(fitted):
    assert list(fitted.predict(NEW)) == inference.predict(fitted.model_, NEW)
    expected = inference.predict_proba(fitted.model_, NEW).numpy()
    np.testing.assert_allclose(fitted.predict_proba(NEW), expected, atol=1e-6)
    assert list(fitted.classes_) == ["bad", "good"]
    assert fitted.score(TEXTS, LABELS) > 0.9


def test_a_notebook_shows_the_strongest_words_and_before_fitting_the_parameters(fitted, quick):
    html = fitted._repr_html_()
    best = max(fitted.lexicon().rows, key=lambda row: (row.texts >= 5) * row.weights[1])
    assert f">{best.word}</td>" in html
    assert "<script" not in html
    assert fitted._repr_mimebundle_()["text/html"] == html
    assert "sk-" in quick._repr_html_()


# Chance


def test_a_fit_leaves_chance_as_it_found_it_and_writes_nothing(quick, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Not Python's own, from which the type checker of these tests draws; it is put back together with the others.
    states = np.random.get_state()[1].tolist(), torch.get_rng_state()
    quick.fit(TEXTS, LABELS)
    assert np.random.get_state()[1].tolist() == states[0]
    assert torch.equal(torch.get_rng_state(), states[1])
    assert os.listdir(tmp_path) == []


def test_a_seed_gives_the_same_weights_and_none_a_new_one(encoder):
    made = LexicalClassifier(encoder=encoder, max_epochs=1, random_state=5)
    first, again = made.fit(TEXTS, LABELS), clone(made).fit(TEXTS, LABELS)
    assert_same_weights(first, again)
    assert first.seed_ == 5
    drawn = [clone(made).set_params(random_state=s)._new_seed() for s in (None, None, np.random.RandomState(1))]
    assert len(set(drawn)) == 3
    with pytest.raises(ValueError, match="random_state is -1"):
        made.set_params(random_state=-1).fit(TEXTS, LABELS)


# Weights


@pytest.mark.parametrize("context", [False, True])
def test_weights_of_samples_pull_the_decision(encoder, context):
    torn = [*TEXTS, *["the church"] * 12]
    labels = [*LABELS, *["good", "bad"] * 6]
    found = []
    for favoured in ("good", "bad"):
        pairs = zip(torn, labels, strict=True)
        given = np.array([20.0 if pair == ("the church", favoured) else 1.0 for pair in pairs])
        clf = LexicalClassifier(encoder=encoder, context=context, max_epochs=1, random_state=0)
        found.append(clf.fit(torn, labels, sample_weight=given).decision_function(["the church"])[0])
    assert found[0] > 0.5 > -0.5 > found[1]


def test_the_loss_and_the_table_are_weighted_by_class(quick):
    plain = quick.fit(TEXTS[:40], LABELS[:40]).decision_function(["a film"])[0]
    for weight, sign in (({"good": 50, "bad": 1}, 1), ({"good": 1, "bad": 50}, -1)):
        heavy = clone(quick).set_params(class_weight=weight).fit(TEXTS[:40], LABELS[:40])
        assert sign * (heavy.decision_function(["a film"])[0] - plain) > 0.1
    balanced = clone(quick).set_params(class_weight="balanced").fit(TEXTS, LABELS)
    assert_same_weights(balanced, clone(quick).fit(TEXTS, LABELS))


def test_equal_weights_change_nothing_and_texts_without_weight_are_not_there(quick):
    ones = clone(quick).fit(TEXTS, LABELS, sample_weight=np.full(len(TEXTS), 3.0))
    assert_same_weights(ones, clone(quick).fit(TEXTS, LABELS))
    extra = clone(quick).fit([*TEXTS, "good good church"], [*LABELS, "bad"], sample_weight=[1.0] * 64 + [0.0])
    np.testing.assert_allclose(extra.predict_proba(NEW), ones.predict_proba(NEW), atol=1e-5)
    for bad, said in (([1.0], "shape"), ([-1.0] * 64, "negative"), ([0.0] * 64, "non-zero")):
        with pytest.raises(ValueError, match=said):
            clone(quick).fit(TEXTS, LABELS, sample_weight=bad)


# Parameters


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"recipe": "ancored"}, "recipe 'ancored' is unknown; did you mean 'anchored'"),
        ({"recipe": "neighbours"}, "context=False fits a table"),
        ({"validation_fraction": 1.5}, "validation_fraction is 1.5"),
        ({"minutes": 0}, "minutes is 0"),
        ({"minutes": "5"}, "minutes is '5'; give a positive number"),
        ({"max_epochs": 0}, "max_epochs is 0"),
        ({"max_epochs": 1.5}, "max_epochs is 1.5; give a whole number"),
        ({"active_words": -1}, "active_words is -1; give a positive number"),
        ({"random_state": "3"}, "random_state is '3'; give a whole number"),
        ({"device": "tpu"}, "device 'tpu' is unknown"),
        ({"encoder": "bundled:maxilm"}, "maxilm"),
    ],
)
def test_parameters_are_checked_by_fit(quick, params, said):
    with pytest.raises(ValueError, match=said):
        quick.set_params(**params).fit(TEXTS, LABELS)


def test_settings_reach_the_training(encoder):
    made = LexicalClassifier(encoder=encoder).set_params(active_words=np.int64(3), max_epochs=np.int64(4))
    training = made._settings().training
    assert (training.active_target, training.max_epochs) == (3.0, 4)
    assert LexicalClassifier()._settings().model.name == "bundled:minilm"


def test_training_ends_in_time_with_the_best_weights(encoder):
    made = LexicalClassifier(encoder=encoder, random_state=0, max_epochs=500, minutes=0.01).fit(TEXTS, LABELS)
    assert made.score(TEXTS, LABELS) > 0.9


def test_progress_is_shown_where_it_is_asked_for(quick, capsys):
    quick.fit(TEXTS, LABELS)
    assert capsys.readouterr() == ("", "")
    quick.set_params(verbose=True).fit(TEXTS, LABELS)
    assert "fitting the table of words" in capsys.readouterr().err
    with quick._training() as watchers:
        watchers.on_note("context is left out")
    assert capsys.readouterr().err.strip() == "context is left out"


# Words


def test_words_are_columns(fitted):
    X = fitted.transform(NEW)
    assert scipy.sparse.issparse(X)
    assert X.format == "csr"
    assert X.has_sorted_indices
    names = fitted.get_feature_names_out()
    assert X.shape == (len(NEW), len(names)) == (4, len(set(names)))
    assert {names[i] for i in X[0].indices} == {word.word for word in fitted.explain(NEW[:1])[0].words}
    # A word that no training text has counts, but has no column.
    assert "unseenly" not in names
    assert fitted.transform([]).shape == (0, len(names))
    np.testing.assert_array_equal(fitted.fit_transform(TEXTS, LABELS).toarray(), fitted.transform(TEXTS).toarray())


def test_words_come_as_a_frame_where_that_is_asked_for(encoder):
    made = LexicalClassifier(encoder=encoder, context=False, random_state=0).set_output(transform="pandas")
    made.fit(TEXTS, LABELS)
    frame = made.transform(pd.Series(NEW, index=list("abcd")))
    assert list(frame.columns) == list(made.get_feature_names_out())
    assert list(frame.index) == list("abcd")
    assert list(made.transform(NEW).index) == [0, 1, 2, 3]
    np.testing.assert_array_equal(frame.to_numpy(), made.set_output(transform="default").transform(NEW).toarray())


def test_contributions_sum_to_the_decision(fitted):
    found = fitted.explain(NEW)
    for why, decided, row in zip(found, fitted.predict(NEW), fitted.decision_function(NEW), strict=True):
        assert why.label == decided
        total = why.bias + sum(word.contribution for word in why.words)
        assert total == pytest.approx(why.explained, abs=1e-4)
        assert abs(why.explained) == pytest.approx(abs(row) / 2, abs=1e-4)
    assert str(fitted.explain(NEW[0])) == str(found[0])
    assert fitted.explain(NEW[:1], target="bad", contrast="good")[0].target == "bad"
    with pytest.raises(ValueError, match="target 'ugly' is not a class; there are"):
        fitted.explain(NEW, target="ugly")


def test_a_suppressed_word_is_gone_and_the_original_keeps_it(fitted):
    before = fitted.predict_proba(NEW)
    without = fitted.suppress(["good"])
    assert not np.allclose(without.predict_proba(NEW[:1]), before[:1])
    np.testing.assert_array_equal(fitted.predict_proba(NEW), before)
    place = list(without.get_feature_names_out()).index("good")
    assert without.transform(NEW)[:, place].nnz == 0 < fitted.transform(NEW)[:, place].nnz
    assert without.get_params() == fitted.get_params()


def test_the_lexicon_is_the_table_of_words(fitted, encoder):
    table = fitted.lexicon()
    assert table.labels == ("bad", "good")
    weights = {row.word: row.weights[1] for row in table.rows}
    assert weights["good"] > 0 > weights["boring"]
    assert {row.word: row.texts for row in table.rows}["good"] == fitted.frequencies_["good"] > 0
    assert "word,weight:bad,weight:good" in table.to_csv()
    other = LexicalClassifier(encoder=encoder, recipe="neighbours", max_epochs=6, random_state=0).fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match="keeps no table"):
        other.lexicon()
    assert other.transform(NEW).shape[1] == len(other.get_feature_names_out())


def test_a_report_shows_decisions_and_accuracy(fitted, tmp_path):
    page = fitted.report(NEW[:2], ["bad", "bad"], tmp_path / "page.html").read_text()
    assert "50.0%" in page
    assert "1 of 2 texts are wrong" in page
    with pytest.raises(ValueError, match="no label in 1 rows"):
        fitted.report(NEW[:2], ["bad", None], tmp_path / "page.html")
    assert "boring" in page


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function", "transform", "explain"])
def test_before_fit_nothing_is_answered(quick, method):
    with pytest.raises(NotFittedError):
        getattr(quick, method)(NEW)
    for call in (quick.lexicon, quick.get_feature_names_out, lambda: quick.suppress("a"), lambda: quick.save("x")):
        with pytest.raises(NotFittedError):
            call()
