"""Texts and labels as users of pandas, polars and scikit-learn have them, and what is refused of them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from tests.sklearn.reviews import LABELS, TEXTS

NEW = ["a good film", "boring acting and a terrible plot", "the river was unseenly good", ""]


@pytest.mark.parametrize(
    "form",
    [
        list, tuple, np.array, lambda t: np.array(t, dtype=object), pd.Series, lambda t: pd.DataFrame({"review": t}),
        lambda t: pd.Series(t, index=[7] * len(t), dtype="string"), lambda t: np.array(t)[:, None],
    ],
    ids=["list", "tuple", "str array", "object array", "series", "frame", "string series", "column"],
)  # fmt: skip
def test_texts_come_in_any_form(quick, form):
    made = clone(quick).fit(form(TEXTS), LABELS)
    np.testing.assert_array_equal(made.predict(form(NEW)), quick.fit(TEXTS, LABELS).predict(NEW))


def test_texts_come_from_polars(quick):
    polars = pytest.importorskip("polars")
    made = quick.fit(polars.Series(TEXTS), LABELS)
    assert list(made.predict(polars.DataFrame({"text": NEW}))) == list(made.predict(NEW))


@pytest.mark.parametrize(
    ("X", "said"),
    [
        ("one text", r"not a list of texts; write \[text\]"),
        (["a", None, "b", float("nan")], "2 of 4 rows of X are no text .rows 1, 3, counted from 0; row 1 is nothing"),
        ([1, "a"], "row 0 is int 1"),
        (pd.DataFrame({"a": ["x"], "b": ["y"]}), "X has 2 columns"),
        (pd.DataFrame([["x", "y"]], columns=["text", "text"]), "two columns have one name"),
        ({"a": "b"}, "X is a dict"),
        (np.zeros((2, 2, 2)), "3 dimensions"),
        (5, "X is int"),
    ],
)
def test_what_is_no_text_is_refused(fitted, X, said):
    with pytest.raises(ValueError, match=said):
        fitted.predict(X)


@pytest.mark.parametrize(
    "names",
    [
        (0, 1), (True, False), (2.0, 10.0), ("10", "9"), (np.int8(3), np.int8(-1)), (1, "one"),
        (pd.Timestamp("2020"), pd.Timestamp("2021")), (("a", 1), ("b", 2)),
    ],
    ids=str,
)  # fmt: skip
def test_labels_may_be_of_any_type(quick, names):
    labels = np.empty(len(LABELS), dtype=object)
    labels[:] = [names[label == "good"] for label in LABELS]
    made = quick.fit(TEXTS, labels if isinstance(names[0], tuple) else list(labels))
    assert len(made.classes_) == 2
    assert all(name in made.classes_.tolist() or name in list(made.classes_) for name in names)
    assert made.predict(["a good film"])[0] == names[1]
    assert made.predict(["a boring film"])[0] == names[0]
    at = [list(made.classes_).index(name) for name in names]
    assert made.predict_proba(["a good film"])[0][at[1]] > 0.5
    why = made.explain(["a good film"], target=names[0])[0]
    assert why.explained < 0


def test_three_classes_are_in_the_order_of_classes(quick):
    labels = [{"good": 10, "bad": 9}[label] for label in LABELS] + [100] * 8
    made = quick.fit([*TEXTS, *["the river bank"] * 8], labels)
    assert made.classes_.tolist() == [9, 10, 100]
    assert made.predict(["the bank", "good", "awful"]).tolist() == [100, 10, 9]
    decision = made.decision_function(NEW)
    np.testing.assert_allclose(decision.sum(1), 0, atol=1e-9)
    np.testing.assert_array_equal(decision.argmax(1), made.predict_proba(NEW).argmax(1))


@pytest.mark.parametrize(
    ("y", "said"),
    [
        ([1, "1"] * 32, "the classes 1 and '1' are both written '1'"),
        (["a"] * 64, "only one class, 'a'"),
        (None, "target y is None"),
        (["a", None] * 32, "no label in 32 rows"),
        ([0.5, float("nan")] * 32, "NaN"),
        (np.linspace(0, 1, 64), "continuous"),
        (np.ones((64, 2)), "the same labels"),
        (["a", "b"], "inconsistent numbers of samples"),
        (["a", " "] * 32, "with no character"),
        (np.array([1.5, 2.0] * 32), "LexicalRegressor"),
        (np.array([1.0, 2.0, float("nan"), 2.0] * 16), "no label in 16 rows .the first is row 2.*dropna"),
        ([["a", "b"], ["a"]] * 32, "of several lengths; give an indicator matrix"),
        (pd.Series([["a", "b"], ["a"]] * 32), r"y.0. is a list; .*give an indicator matrix"),
    ],
)
def test_labels_that_cannot_be_learned_are_refused(quick, y, said):
    with pytest.raises(ValueError, match=said):
        quick.fit(TEXTS, y)
    assert not hasattr(quick, "model_")


def test_strings_of_any_length_are_labels(quick):
    made = quick.fit(TEXTS, np.array(LABELS, dtype=np.dtypes.StringDType()))
    assert made.classes_.tolist() == ["bad", "good"]


def test_no_texts_and_no_list_of_callbacks_are_refused(quick):
    with pytest.raises(ValueError, match="X has no text"):
        quick.fit([], [])
    with pytest.raises(ValueError, match="callbacks is str; give a list of objects"):
        quick.fit(TEXTS, LABELS, callbacks="Losses")


def test_few_or_equal_texts_are_validated_on_themselves_with_a_warning(quick):
    with pytest.warns(UserWarning, match="too few, or too much alike"):
        made = quick.fit(["a good film", "a bad film"], [1, 0])
    assert made.predict(["good", "bad"]).tolist() == [1, 0]
