import pytest

from lexical_sae.sklearn import LexicalClassifier
from tests import tiny
from tests.sklearn.reviews import LABELS, TEXTS


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
    return str(tiny.saved_encoder(tmp_path_factory.mktemp("estimators") / "encoder"))


@pytest.fixture
def quick(encoder):
    """A classifier that fits in a quarter of a second: its table alone."""
    return LexicalClassifier(encoder=encoder, context=False, random_state=0)


@pytest.fixture(scope="session")
def fitted(encoder):
    """A classifier with context; tests leave it as it is."""
    return LexicalClassifier(encoder=encoder, random_state=0, max_epochs=1).fit(TEXTS, LABELS)
