"""Context-free classifiers on the same rows, and the words that tell them nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int
from numpy import ndarray
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from lexical_sae.data.language import NEGATIONS, word_form
from lexical_sae.evaluation.context.words import written_words
from lexical_sae.evaluation.names.bag_of_words import BagOfWords, NoWords
from lexical_sae.utils.downloads import PyPIArchive, fetch_from_pypi

REFERENCE = "Hutto & Gilbert 2014, ICWSM"
LEXICON = PyPIArchive(
    package="vaderSentiment",
    version="3.3.2",
    sha256="3bf1d243b98b1afad575b9f22bc2cb1e212b94ff89ca74f8a23a588d024ea311",
    member="vaderSentiment/vader_lexicon.txt",
)
UNINFORMATIVE = 0.35
"""The presence of a neutral word moves the classes apart by less than this many logits."""
POLARITY_SHIFTERS = frozenset({"hardly", "barely", "scarcely", "rarely", "seldom", "lack", "lacks", "fails", "fail"})
"""Negations of another kind: what they do depends on the rest of the sentence by their meaning."""
MOST_STEPS = 1000
STRENGTH = 4.0
"""Inverse penalty of the TF-IDF regression."""


@dataclass(frozen=True)
class References:
    """What is fitted on the training rows alone, once for all models that are measured beside it."""

    bag: BagOfWords
    vectorizer: TfidfVectorizer
    regression: LogisticRegression
    neutral: frozenset[str]
    """Forms of words whose presence is uninformative."""
    lexicon: str | None
    """The sentiment lexicon whose words do not count as neutral; None without."""

    def tfidf(self, texts: Sequence[str]) -> Int[ndarray, " T"]:
        """Labels by TF-IDF of words and word pairs."""
        return np.asarray(self.regression.predict(self.vectorizer.transform(texts)), dtype=np.int64)

    def bag_of_words(self, texts: Sequence[str]) -> Int[ndarray, " T"]:
        """Labels by the bag of words."""
        classes = np.asarray(self.bag.classifier.classes_, dtype=np.int64)
        return classes[[reading.label for reading in self.bag.contributions(texts)]]


def fit_references(
    texts: Sequence[str], labels: Sequence[int], bag: BagOfWords | None = None, lexicon: frozenset[str] | None = None
) -> References:
    """Bag of words and TF-IDF (1-2-grams) with logistic regression; words of the lexicon are never neutral."""
    vectorizer, columns = _words_and_pairs(texts)
    regression = LogisticRegression(C=STRENGTH, max_iter=MOST_STEPS).fit(columns, np.asarray(labels))
    return References(
        bag=BagOfWords(texts, labels) if bag is None else bag,
        vectorizer=vectorizer,
        regression=regression,
        neutral=neutral_words(texts, labels, lexicon or frozenset()),
        lexicon=f"{LEXICON.package} {LEXICON.version}" if lexicon else None,
    )


def _words_and_pairs(texts: Sequence[str]) -> tuple[TfidfVectorizer, Any]:
    """TF-IDF of what two texts have, or, of texts that share nothing, of what one has."""
    for least in (2, 1):
        # A word may be one letter: short texts have no other.
        vectorizer = TfidfVectorizer(ngram_range=(1, 2), min_df=least, sublinear_tf=True, token_pattern=r"(?u)\b\w+\b")
        try:
            return vectorizer, vectorizer.fit_transform(texts)
        except ValueError:
            # So it says that nothing is left.
            continue
    raise NoWords(f"none of the {len(texts)} training texts has a word, so there is no context-free reference")


def neutral_words(texts: Sequence[str], labels: Sequence[int], lexicon: frozenset[str] = frozenset()) -> frozenset[str]:
    """Words of the training texts whose presence does not tell classes apart; no negations, none of the lexicon.

    A logistic regression on which words are present gives each word a weight per class. Twice their standard deviation
    over classes, which for two classes is the usual coefficient, is below 0.35.
    """
    counter = CountVectorizer(analyzer=_forms, binary=True)  # pyright: ignore[reportArgumentType]
    columns: Any = counter.fit_transform(texts)
    weights = LogisticRegression(max_iter=MOST_STEPS).fit(columns, np.asarray(labels)).coef_
    effect = np.abs(weights[0]) if len(weights) == 1 else 2 * weights.std(axis=0)
    weak = set(counter.get_feature_names_out()[effect < UNINFORMATIVE].tolist())
    return frozenset(weak - {word_form(word) for word in NEGATIONS} - POLARITY_SHIFTERS - lexicon)


def _forms(text: str) -> list[str]:
    return [word for word in written_words(text) if word[0].isalnum()]


def sentiment_lexicon() -> frozenset[str] | None:
    """The words of VADER's lexicon, downloaded the first time; None where that cannot be done."""
    try:
        return read_lexicon(fetch_from_pypi(LEXICON))
    except (OSError, RuntimeError):
        return None


def read_lexicon(path: Path) -> frozenset[str]:
    """The first field of each line, in lower case."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return frozenset(line.split("\t")[0].casefold() for line in lines if line.strip())
