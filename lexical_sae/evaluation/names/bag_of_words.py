"""The ceiling for names: logistic regression on the words of a text, whose features are what they are called."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from lexical_sae.data.words import word_spans
from lexical_sae.evaluation.names.model import NamedWord, Probe, Reading, Response, Span
from lexical_sae.evaluation.names.text import words_and_marks
from lexical_sae.utils.errors import DataError
from lexical_sae.utils.progress import OnStep, Step, silent


class NoWords(DataError):
    """There is no word whose name could be tried, or none to compare it with."""


class BagOfWords:
    """TF-IDF and logistic regression over whole words.

    Not normalised: a word's contribution depends on its own count alone, so without the word it is zero.
    """

    def __init__(self, texts: Sequence[str], labels: Sequence[int]) -> None:
        if len(set(labels)) < 2:
            raise NoWords(f"a bag of words needs texts of two classes or more, got labels {sorted(set(labels))}")
        if not any(map(_words, texts)):
            raise NoWords(f"none of {len(texts)} texts has a word of letters or digits, so no name can be tried")
        self.vectorizer = TfidfVectorizer(analyzer=_words, norm=None)  # pyright: ignore[reportArgumentType]
        features = self.vectorizer.fit_transform(texts)
        self.classifier = LogisticRegression(max_iter=1000).fit(features, np.asarray(labels))
        coefficients = self.classifier.coef_
        if len(coefficients) == 1:
            coefficients = np.concatenate([-coefficients, coefficients]) / 2
        self.weights = coefficients - coefficients.mean(0)
        self.names = tuple(str(name) for name in self.vectorizer.get_feature_names_out())
        self.vocabulary = {name: i for i, name in enumerate(self.names)}
        self.idf = np.asarray(self.vectorizer.idf_)
        bias = np.asarray(self.classifier.intercept_)
        self.bias = np.concatenate([-bias, bias]) / 2 if len(bias) == 1 else bias - bias.mean()

    @property
    def blank(self) -> str:
        """Nothing but a space."""
        return " "

    def as_read(self, texts: Sequence[str]) -> list[str]:
        """All of it."""
        return list(texts)

    def contributions(self, texts: Sequence[str], on_step: OnStep = silent) -> list[Reading]:
        """The known words of each text; predicted is the index of a class among the sorted labels."""
        if not texts:
            return []
        labels = self.classifier.decision_function(self.vectorizer.transform(texts))
        predicted = labels.argmax(1) if labels.ndim == 2 else (labels > 0).astype(int)
        readings = [self._read(text, int(label)) for text, label in zip(texts, predicted, strict=True)]
        on_step(Step("reading texts", len(texts), len(texts)))
        return readings

    def read_edited(self, texts: Sequence[str], on_step: OnStep = silent) -> list[Reading]:
        """As any text: the blank is a space."""
        return self.contributions(texts, on_step)

    def decide(self, texts: Sequence[Sequence[NamedWord]]) -> Float[ndarray, "T C"]:
        """The bias plus the contributions of the words."""
        sums = [np.sum([word.contributions for word in words], axis=0) if words else 0.0 for words in texts]
        return np.array([self.bias + total for total in sums]).reshape(len(texts), len(self.bias))

    def default_contributions(self, readings: Sequence[Reading]) -> list[list[tuple[float, ...]]]:
        """All of it: no word depends on another."""
        return [[word.contributions for word in reading.words] for reading in readings]

    def responses(self, probes: Sequence[Probe], on_step: OnStep = silent) -> list[Response]:
        """The answer to each probe."""
        by_text = {text: self._activations(text) for text in {probe.text for probe in probes}}
        activations = [by_text[probe.text].get(probe.dimension, 0.0) for probe in probes]
        answers = [
            Response(activation * float(self.weights[probe.label, probe.dimension]), activation)
            for probe, activation in zip(probes, activations, strict=True)
        ]
        on_step(Step("reading edited texts", len(probes), len(probes)))
        return answers

    def dimensions_of(self, words: Sequence[str]) -> list[tuple[int, ...]]:
        """The word's own feature."""
        return [(self.vocabulary[word],) if word in self.vocabulary else () for word in words]

    def neighbours(self, dimensions: Sequence[int], k: int) -> Mapping[int, frozenset[int]]:
        """None: a bag of words knows no nearness."""
        del k
        return {dimension: frozenset() for dimension in dimensions}

    def _activations(self, text: str) -> dict[int, float]:
        counts = Counter(self.vocabulary[word] for word in _words(text) if word in self.vocabulary)
        return {i: count * float(self.idf[i]) for i, count in counts.items()}

    def _read(self, text: str, label: int) -> Reading:
        spans: dict[str, Span] = {}
        for start, end in word_spans(text):
            spans.setdefault(text[start:end].casefold(), (start, end))
        words = []
        for dimension, activation in self._activations(text).items():
            values = tuple(float(value) for value in activation * self.weights[:, dimension])
            name = self.names[dimension]
            words.append(NamedWord(dimension, name, spans[name], activation, values, values[label]))
        words.sort(key=lambda word: (-abs(word.contribution), word.dimension))
        return Reading(text, label, tuple(words), frozenset(word.dimension for word in words))


def _words(text: str) -> list[str]:
    return [word for word in words_and_marks(text) if word[0].isalnum()]
