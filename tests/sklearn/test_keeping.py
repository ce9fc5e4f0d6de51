import copy
import json
import pickle
from pathlib import Path

import joblib
import numpy as np
import pytest
import sklearn
import torch
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, permutation_test_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from lexical_sae.models.persistence import from_pretrained
from lexical_sae.sklearn import LexicalClassifier, LexicalRegressor, LexicalTagger, LexicalVectorizer
from lexical_sae.sklearn.estimator import ESTIMATOR_FILE
from tests.sklearn.reviews import LABELS, TEXTS

NEW = ["a good film", "boring acting and a terrible plot", "the river was unseenly good"]


# On disk and in bytes


def test_a_pickle_holds_safetensors_and_plain_data(fitted):
    state = fitted.__getstate__()
    files = state.pop("model_files")
    assert {"model.safetensors", "config.json", "tokenizer.json"} <= files.keys()
    assert all(type(content) is bytes for content in files.values())
    plain = (str, int, float, bool, type(None), np.ndarray, dict)
    assert all(isinstance(value, plain) for value in state.values())


@pytest.mark.parametrize("way", [lambda e: pickle.loads(pickle.dumps(e)), copy.deepcopy], ids=["pickle", "deepcopy"])
def test_a_copy_decides_the_same(fitted, way):
    made = way(fitted)
    np.testing.assert_array_equal(made.predict_proba(NEW), fitted.predict_proba(NEW))
    np.testing.assert_array_equal(made.transform(NEW).toarray(), fitted.transform(NEW).toarray())
    assert made.get_params() == fitted.get_params()
    assert made.lexicon().rows == fitted.lexicon().rows


def test_joblib_skops_and_suppressed_models_too(fitted, tmp_path):
    joblib.dump(fitted.suppress("good"), tmp_path / "model.joblib")
    back = joblib.load(tmp_path / "model.joblib")
    np.testing.assert_array_equal(back.predict_proba(NEW), fitted.suppress("good").predict_proba(NEW))
    skops = pytest.importorskip("skops.io")
    text = skops.dumps(fitted)
    untrusted = skops.get_untrusted_types(data=text)
    assert untrusted == ["lexical_sae.sklearn.classifier.LexicalClassifier"]
    np.testing.assert_array_equal(skops.loads(text, trusted=untrusted).predict_proba(NEW), fitted.predict_proba(NEW))


def test_an_estimator_before_fit_is_pickled_as_its_parameters(quick):
    assert "model_files" not in quick.__getstate__()
    assert pickle.loads(pickle.dumps(quick)).get_params() == quick.get_params()


def test_a_damaged_pickle_is_refused(fitted):
    state = fitted.__getstate__()
    files = {**state["model_files"], "model.safetensors": state["model_files"]["model.safetensors"][:-8] + b"damaged!"}
    with pytest.raises(ValueError, match="not the file that was saved"):
        LexicalClassifier.__new__(LexicalClassifier).__setstate__({**state, "model_files": files})


@pytest.mark.parametrize("names", [("good", "bad"), (1, 0), (2.0, -1.0), (True, False)], ids=str)
def test_a_saved_estimator_comes_back(quick, tmp_path, names):
    quick.set_params(class_weight={names[0]: 2.0, names[1]: 1.0})
    quick.fit(TEXTS, [names[label == "bad"] for label in LABELS])
    place = quick.save(tmp_path / "saved")
    back = LexicalClassifier.load(place)
    assert back.get_params() == quick.get_params()
    assert back.classes_.dtype == quick.classes_.dtype
    np.testing.assert_array_equal(back.classes_, quick.classes_)
    np.testing.assert_array_equal(back.predict_proba(NEW), quick.predict_proba(NEW))
    assert back.lexicon().rows == quick.lexicon().rows
    # What the command line opens as a model.
    assert from_pretrained(place).labels["classify"]


def test_a_run_of_the_command_line_is_loaded(fitted, tmp_path):
    fitted.model_.save_pretrained(tmp_path / "run" / "model")
    made = LexicalClassifier.load(tmp_path / "run")
    np.testing.assert_array_equal(made.predict_proba(NEW), fitted.predict_proba(NEW))
    np.testing.assert_array_equal(LexicalClassifier.from_model(fitted.model_).predict(NEW), fitted.predict(NEW))


def test_what_json_cannot_hold_and_what_is_another_class_is_refused(quick, tmp_path):
    dates = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]")
    made = quick.fit(TEXTS, dates[[int(label == "good") for label in LABELS]])
    with pytest.raises(ValueError, match="save writes JSON"):
        made.save(tmp_path / "dates")
    assert not (tmp_path / "dates").exists()
    assert pickle.loads(pickle.dumps(made)).predict(NEW)[0] == dates[1]
    pairs = np.empty(len(TEXTS), dtype=object)
    pairs[:] = [(label, 1) for label in LABELS]
    with pytest.raises(ValueError, match="no place for tuple"):
        made.fit(TEXTS, pairs).save(tmp_path / "pairs")
    made.set_params(encoder=Path(made.encoder))
    made.fit(TEXTS, LABELS).save(tmp_path / "saved")
    assert LexicalClassifier.load(tmp_path / "saved").encoder == str(made.encoder)
    assert json.loads((tmp_path / "saved" / ESTIMATOR_FILE).read_text())["estimator"] == "LexicalClassifier"
    with pytest.raises(ValueError, match="holds a LexicalClassifier, not a LexicalVectorizer"):
        LexicalVectorizer.load(tmp_path / "saved")


# With the rest of scikit-learn


def test_searches_and_cross_validation(quick):
    search = GridSearchCV(quick, {"active_words": [1.0, 2.0]}, cv=2).fit(TEXTS, LABELS)
    assert search.best_score_ > 0.8
    assert cross_val_score(quick, TEXTS, LABELS, cv=2).min() > 0.8
    score, others, _ = permutation_test_score(quick, np.array(TEXTS), LABELS, cv=2, n_permutations=2, random_state=0)
    assert score > others.mean()


def test_pipelines_and_calibration(quick):
    pipeline = make_pipeline(LexicalVectorizer(**quick.get_params()), LogisticRegression()).fit(TEXTS, LABELS)
    assert pipeline.score(TEXTS, LABELS) > 0.9
    assert "good" in pipeline[:-1].get_feature_names_out()
    calibrated = CalibratedClassifierCV(quick, cv=2, ensemble=False).fit(TEXTS, LABELS)
    np.testing.assert_allclose(calibrated.predict_proba(NEW).sum(1), 1)


def test_sample_weights_are_routed(quick):
    weights = np.array([20.0 if label == "good" else 1.0 for label in LABELS])
    with sklearn.config_context(enable_metadata_routing=True):
        asking = quick.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(asking, {"active_words": [1.0]}, cv=2).fit(TEXTS, LABELS, sample_weight=weights)
    direct = quick.fit(TEXTS, LABELS, sample_weight=weights)
    np.testing.assert_array_equal(search.predict_proba(NEW), direct.predict_proba(NEW))


def test_tags_are_true():
    for estimator, kind in ((LexicalClassifier(), "classifier"), (LexicalVectorizer(), None), (LexicalTagger(), None)):
        tags = get_tags(estimator)
        assert tags.estimator_type == kind
        assert tags.input_tags.string
        assert not tags.input_tags.two_d_array
        assert not tags.input_tags.allow_nan
    assert get_tags(LexicalClassifier()).target_tags.required
    assert not get_tags(LexicalVectorizer()).target_tags.required
    assert get_tags(LexicalClassifier()).classifier_tags.multi_label
    assert get_tags(LexicalRegressor()).estimator_type == "regressor"


def test_fits_in_threads_take_turns(quick):
    def fit(seed):
        return sklearn.clone(quick).set_params(random_state=seed).fit(TEXTS, LABELS).predict_proba(NEW)

    apart = [fit(seed) for seed in (0, 1)]
    together = joblib.Parallel(n_jobs=2, backend="threading")(joblib.delayed(fit)(seed) for seed in (0, 1))
    np.testing.assert_array_equal(apart, together)


@pytest.mark.slow
def test_workers_share_the_cores(quick):
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(torch.get_num_threads)() for _ in range(2))
    assert max(found) <= max(1, joblib.cpu_count() // 2)
    assert cross_val_score(quick, TEXTS, LABELS, cv=2, n_jobs=2).min() > 0.8


# The vectorizer by itself


def test_without_labels_every_word_of_the_texts_is_a_column(encoder):
    made = LexicalVectorizer(encoder=encoder).fit(TEXTS)
    assert set(made.get_feature_names_out()) == {word for text in TEXTS for word in text.split()}
    X = made.transform(["good good film", "film", "church"])
    names = list(made.get_feature_names_out())
    assert X[0, names.index("good")] == X[0, names.index("film")] > 0
    assert X[2].nnz == 0
    back = pickle.loads(pickle.dumps(made))
    np.testing.assert_array_equal(back.transform(TEXTS).toarray(), made.transform(TEXTS).toarray())
    with pytest.raises(ValueError, match="give y"):
        made.fit(TEXTS, sample_weight=[1.0] * 64)
    with pytest.raises(ValueError, match="0 sample"):
        made.fit([])


def test_with_labels_it_is_the_code_of_the_classifier(quick):
    made = LexicalVectorizer(**quick.get_params()).fit(TEXTS, LABELS)
    np.testing.assert_array_equal(made.transform(NEW).toarray(), quick.fit(TEXTS, LABELS).transform(NEW).toarray())
