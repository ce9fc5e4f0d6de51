"""scikit-learn's own checks. For texts it yields a single one, so they run on rows of numbers turned into words."""

import warnings
from typing import Any

import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

from lexical_sae.sklearn import LexicalClassifier, LexicalTagger, LexicalVectorizer
from tests.sklearn.numbers import NumbersClassifier, NumbersVectorizer, encoder_of_numbers

SKIPPED = {
    "check_sample_weight_equivalence_on_dense_data": (
        "texts given twice have a validation split, folds and word frequencies of their own, as texts of weight two "
        "have not: both are right, and not equal"
    ),
}


FEWEST = 54
"""Checks of the classifier that must run and pass."""


def checks(estimator, *marks):
    """The checks of an estimator, each with a name and the estimator's class."""
    generated: Any = estimator_checks_generator(estimator, legacy=True)
    found = [check for _, check in generated]
    return [
        pytest.param(check, type(estimator), id=f"{type(estimator).__name__}-{name_of(check)}", marks=marks)
        for check in found
    ]


def name_of(check) -> str:
    options = "-".join(f"{name}={value}" for name, value in check.keywords.items())
    return check.func.__name__ + (f"[{options}]" if options else "")


CLASSIFIER = checks(NumbersClassifier(context=False))
VECTORIZER = checks(NumbersVectorizer(context=False), pytest.mark.slow)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return encoder_of_numbers(tmp_path_factory.mktemp("numbers"))


@pytest.mark.filterwarnings("default")
@pytest.mark.filterwarnings("ignore:16 rows are too few, or too much alike")
@pytest.mark.parametrize(("check", "kind"), [*CLASSIFIER, *VECTORIZER])
def test_check(check, kind, encoder):
    if check.func.__name__ in SKIPPED:
        pytest.skip(SKIPPED[check.func.__name__])
    check(kind(encoder=encoder, context=False))


def test_nearly_all_checks_run():
    names = [param.values[0].func.__name__ for param in CLASSIFIER]
    assert len(names) - sum(name in SKIPPED for name in names) >= FEWEST
    assert set(names) >= SKIPPED.keys()


def test_texts_pass_the_one_check_that_there_is_for_texts():
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        for estimator in (LexicalClassifier(), LexicalVectorizer(), LexicalTagger()):
            generated: Any = estimator_checks_generator(estimator, legacy=True)
            for _, check in generated:
                if check.func.__name__ != "check_do_not_raise_errors_in_init_or_set_params":
                    check(clone(estimator))
