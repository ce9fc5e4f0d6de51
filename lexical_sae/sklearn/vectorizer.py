"""`LexicalVectorizer`: texts to a sparse matrix of words, for any estimator after it."""

from typing import Any

from sklearn.utils import check_consistent_length

from lexical_sae.models.lexical_sae import CLASSIFY, LexicalSAE
from lexical_sae.sklearn.classifier import LexicalClassifier
from lexical_sae.sklearn.words import WordCodeEstimator
from lexical_sae.utils.errors import DataError


class LexicalVectorizer(WordCodeEstimator):
    """A transformer from texts to the activations of words.

    Fitted with labels, it is the word code of a `LexicalClassifier` with the same parameters (see there): words that
    do not matter for the labels have no column, and context shifts some of the others. Fitted without labels, every
    word of the texts has a column, with its activation without context: a bag of words, in texts of any length.

    Args:
        encoder: As in `LexicalClassifier`, like all others.
        recipe: Without labels, a recipe with literal words: `anchored`.
        context: Whether words may be shifted by the words around them; labels are needed to learn how.
        active_words: Active words, or with `anchored` shifts, per text.
        max_epochs: Passes over the training texts.
        minutes: When to end training early.
        class_weight: Weights of the classes.
        validation_fraction: Share of the texts that is held out to choose the best weights.
        device: auto, cpu, cuda or mps.
        random_state: A seed.
        verbose: Whether to show progress.

    Example:
        >>> make_pipeline(LexicalVectorizer(context=False), LogisticRegression()).fit(texts, labels)
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "LexicalVectorizer":
        """Learn which words there are and, with labels, which of them matter.

        Args:
            X: Texts.
            y: A label per text, or None.
            sample_weight: How much each text counts; needs labels.

        Returns:
            The estimator itself.
        """
        texts = self._texts(X, y)
        if y is not None:
            check_consistent_length(texts, y)
            fitted = LexicalClassifier(**self.get_params(deep=False)).fit(texts, y, sample_weight)
            self.model_, self.seed_ = fitted.model_, fitted.seed_
            self.word_ids_, self.frequencies_ = fitted.word_ids_, fitted.frequencies_
            return self
        if sample_weight is not None:
            raise DataError("sample_weight says how much a label counts; give y, or leave it out")
        if not texts:
            raise DataError("X has no text: found array with 0 sample(s) while a minimum of 1 is required")
        settings = self._settings(without_context=True)
        with self._training():
            # No decision is taken: a head needs two labels to be one.
            labels = {CLASSIFY: ("0", "1")}
            self.model_, self.seed_ = LexicalSAE.from_backbone(settings.model, labels, texts).eval(), 0
        self._take_words(texts)
        return self
