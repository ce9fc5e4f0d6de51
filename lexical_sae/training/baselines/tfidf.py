"""The floor: TF-IDF of words and word pairs into a logistic regression."""

from collections.abc import Sequence
from typing import Any

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from lexical_sae.data import TextDataset
from lexical_sae.training.baselines.scores import BaselineScores, scores_on
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.progress import OnStep, Step, silent

STRENGTHS = (1.0, 4.0, 16.0)
"""What the floor's regression may choose from; the weaker its prior, the larger."""


def tfidf_baseline(dataset: TextDataset, on_step: OnStep = silent) -> BaselineScores:
    """Words and word pairs, weighted by rarity, into a logistic regression; its regularization chosen on validation."""
    on_step(Step("TF-IDF, counting words", 0, len(STRENGTHS)))
    vectors, train = counted_words(dataset.train.texts)
    validation, test = (vectors.transform(split.texts) for split in (dataset.validation, dataset.test))
    models = {}
    for done, activation in enumerate(STRENGTHS):
        models[f"C={activation:g}"] = LogisticRegression(C=activation, max_iter=2000).fit(train, dataset.train.labels)
        on_step(Step("TF-IDF, fitting", done + 1, len(STRENGTHS)))
    found = {name: float(model.score(validation, dataset.validation.labels)) for name, model in models.items()}
    best = max(found, key=lambda name: found[name])
    return scores_on(dataset.test, "TF-IDF", models[best].predict(test), best, found)


def counted_words(texts: Sequence[str]) -> tuple[TfidfVectorizer, Any]:
    """Words and pairs that two texts have, or, of texts that share none, those of one; with their weights."""
    failure: ValueError | None = None
    for least in (2, 1):
        vectors = TfidfVectorizer(ngram_range=(1, 2), min_df=least, sublinear_tf=True)
        try:
            return vectors, vectors.fit_transform(texts)
        except ValueError as error:
            # So that nothing is left is reported.
            failure = error
    raise SettingsError(
        f"none of the {len(texts)} training texts has a word of two letters, so TF-IDF has no feature"
    ) from failure
