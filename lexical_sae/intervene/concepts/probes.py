"""Three probes that try to read a concept from words: logistic regression, nearest neighbours, boosted trees.

A probe is fitted on some texts and scored on others. Its input is sparse activations or, after an erasure, their dense
support.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool
from numpy import ndarray
from scipy.sparse import csr_array, issparse
from scipy.stats import binomtest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from lexical_sae.intervene.concepts.word_matrix import EditedCodes
from lexical_sae.intervene.concepts.word_sets import correlations

TREE_WORDS = 200
"""Words given to the trees: those that correlate most with the concept on the texts for fitting."""
NEIGHBOURS = 15
CONFIDENCE = 0.95


@dataclass(frozen=True)
class ProbeScore:
    """Accuracy of one probe on held-out texts."""

    probe: str
    accuracy: float
    low: float
    high: float
    """95 % confidence limits (Wilson)."""
    is_correct: tuple[bool, ...]
    """By text, so that differences can be paired."""

    def beats(self, rate: float, comparisons: int) -> bool:
        """Whether its accuracy is significantly above `rate`, corrected for the number of comparisons."""
        hits = sum(self.is_correct)
        found = binomtest(hits, len(self.is_correct), min(rate, 1.0), alternative="greater")
        return float(found.pvalue) < (1 - CONFIDENCE) / comparisons


def linear_probe(seed: int) -> Any:
    """Logistic regression on activations scaled by their maximum."""
    return make_pipeline(MaxAbsScaler(), LogisticRegression(max_iter=1000, random_state=seed))


def neighbours_probe(seed: int) -> Any:
    """Vote of the nearest texts by cosine."""
    del seed
    return KNeighborsClassifier(NEIGHBOURS, metric="cosine", algorithm="brute")


class TreesOnCorrelatedWords:
    """Boosted trees on the words that correlate most with the concept."""

    def __init__(self, seed: int) -> None:
        settings: dict[str, Any] = {"max_iter": 60, "max_leaf_nodes": 15, "early_stopping": False}
        self.trees = HistGradientBoostingClassifier(random_state=seed, **settings)
        self.columns = np.zeros(0, dtype=int)

    def fit(self, features: Any, concept: Bool[ndarray, " N"]) -> None:
        """Choose the words and grow the trees, on the same texts."""
        correlation = np.abs(correlations(csr_array(features), concept.astype(float)))
        self.columns = np.argsort(-correlation, kind="stable")[:TREE_WORDS]
        self.trees.fit(self._chosen(features), concept)

    def predict(self, features: Any) -> ndarray:
        """The concept of each text."""
        return np.asarray(self.trees.predict(self._chosen(features)))

    def _chosen(self, features: Any) -> ndarray:
        some = features[:, self.columns]
        return some.toarray() if issparse(some) else some


PROBES: Mapping[str, Callable[[int], Any]] = {
    "logistic regression": linear_probe,
    "k-NN": neighbours_probe,
    "boosted trees": TreesOnCorrelatedWords,
}


def text_probe(seed: int) -> Any:
    """Logistic regression on the words and word pairs of the raw text: how well the text itself reveals the concept."""
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\w+")
    return make_pipeline(words, LogisticRegression(C=10.0, max_iter=1000, random_state=seed))


def run_probe(
    name: str, probe: Any, fit: tuple[Any, Bool[ndarray, " M"]], held_out: tuple[Any, Bool[ndarray, " N"]]
) -> ProbeScore:
    """The score on held-out texts of a probe fitted on others."""
    features, concept = fit
    probe.fit(features, concept)
    is_correct = np.asarray(probe.predict(held_out[0]) == held_out[1])
    ends = binomtest(int(is_correct.sum()), len(is_correct)).proportion_ci(CONFIDENCE, method="wilson")
    return ProbeScore(name, float(is_correct.mean()), float(ends.low), float(ends.high), tuple(is_correct.tolist()))


def probe_features(fit: EditedCodes, held_out: EditedCodes) -> tuple[Any, Any]:
    """The inputs of probes for two sets of texts: the words active in the first; dense after an erasure."""
    support = fit.support
    if len(fit.directions):
        return fit.dense(support), held_out.dense(support)
    return fit.words[:, support], held_out.words[:, support]
