"""Three probes that try to read a concept from words: a linear one, one by nearness, one by trees.

A probe is fitted on some texts and asked about others. What it reads is either sparse words or, after an erasure, their
dense support; what it may not do is learn from the texts that it is asked about.
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

from splade.surgery.closure import correlations
from splade.surgery.codes import EditedCodes

TREE_WORDS = 200
"""Words that the trees may look at: those that tell most about the concept on the texts for fitting."""
NEIGHBOURS = 15
CONFIDENCE = 0.95


@dataclass(frozen=True)
class ProbeScore:
    """How often one probe was right about texts that it had not seen."""

    probe: str
    accuracy: float
    low: float
    high: float
    """Ends of the 95 % interval (Wilson's)."""
    is_correct: tuple[bool, ...]
    """Of each text, in order, so that differences can be paired."""

    def beats(self, rate: float, comparisons: int) -> bool:
        """Whether it is right more often than `rate`, by more than chance explains in so many tries."""
        hits = sum(self.is_correct)
        found = binomtest(hits, len(self.is_correct), min(rate, 1.0), alternative="greater")
        return float(found.pvalue) < (1 - CONFIDENCE) / comparisons


def linear_probe(seed: int) -> Any:
    """Logistic regression on words scaled by their greatest strength."""
    return make_pipeline(MaxAbsScaler(), LogisticRegression(max_iter=1000, random_state=seed))


def nearness_probe(seed: int) -> Any:
    """The vote of the nearest texts by cosine."""
    del seed
    return KNeighborsClassifier(NEIGHBOURS, metric="cosine", algorithm="brute")


class TreesOnTellingWords:
    """Boosted trees on the words that correlate most with the concept."""

    def __init__(self, seed: int) -> None:
        settings: dict[str, Any] = {"max_iter": 60, "max_leaf_nodes": 15, "early_stopping": False}
        self.trees = HistGradientBoostingClassifier(random_state=seed, **settings)
        self.columns = np.zeros(0, dtype=int)

    def fit(self, features: Any, concept: Bool[ndarray, " N"]) -> None:
        """Choose the words and grow the trees, on the same texts."""
        telling = np.abs(correlations(csr_array(features), concept.astype(float)))
        self.columns = np.argsort(-telling, kind="stable")[:TREE_WORDS]
        self.trees.fit(self._chosen(features), concept)

    def predict(self, features: Any) -> ndarray:
        """The concept of each text."""
        return np.asarray(self.trees.predict(self._chosen(features)))

    def _chosen(self, features: Any) -> ndarray:
        some = features[:, self.columns]
        return some.toarray() if issparse(some) else some


PROBES: Mapping[str, Callable[[int], Any]] = {
    "logistic regression": linear_probe,
    "k-NN": nearness_probe,
    "boosted trees": TreesOnTellingWords,
}


def text_probe(seed: int) -> Any:
    """Logistic regression on the words and word pairs of the raw text: what the text itself gives away."""
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\w+")
    return make_pipeline(words, LogisticRegression(C=10.0, max_iter=1000, random_state=seed))


def run_probe(
    name: str, probe: Any, fit: tuple[Any, Bool[ndarray, " M"]], held_out: tuple[Any, Bool[ndarray, " N"]]
) -> ProbeScore:
    """Fit a probe on texts with their concept, and ask it about others."""
    features, concept = fit
    probe.fit(features, concept)
    is_correct = np.asarray(probe.predict(held_out[0]) == held_out[1])
    ends = binomtest(int(is_correct.sum()), len(is_correct)).proportion_ci(CONFIDENCE, method="wilson")
    return ProbeScore(name, float(is_correct.mean()), float(ends.low), float(ends.high), tuple(is_correct.tolist()))


def probe_features(fit: EditedCodes, held_out: EditedCodes) -> tuple[Any, Any]:
    """What probes read of two sets of texts: the words that the first has; written out where there are directions."""
    support = fit.support
    if len(fit.directions):
        return fit.dense(support), held_out.dense(support)
    return fit.words[:, support], held_out.words[:, support]
