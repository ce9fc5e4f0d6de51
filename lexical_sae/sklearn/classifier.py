"""`LexicalClassifier`: texts to labels, with the words behind every decision."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.special
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils import check_consistent_length

from lexical_sae.data import TextSplit
from lexical_sae.data.tables.cell_values import label_text, sorted_label_names
from lexical_sae.data.targets import label_strata
from lexical_sae.inference import explain
from lexical_sae.inference.reading import is_one_text
from lexical_sae.models.lexical_sae import CLASSIFY
from lexical_sae.outputs import Classes, Labels
from lexical_sae.sklearn.deciding import DecidingEstimator, Judged, task_rows
from lexical_sae.sklearn.estimator import json_value
from lexical_sae.sklearn.inputs import classes_of, indicator_of, is_indicator, labels_of, weights_of
from lexical_sae.utils.errors import DataError, SettingsError


class LexicalClassifier(ClassifierMixin, DecidingEstimator):
    """A text classifier whose features are words, with exact explanations.

    Fitted with an indicator matrix (a column of 0 and 1 per label), a text may have any number of labels: `classes_`
    are the columns, `predict` gives such a matrix, and every label has a threshold of its own.

    Args:
        encoder: `minilm`, `granite` or `mpnet`, which install from PyPI, the folder of a masked language model, or a
            hub name.
        recipe: Which generation of the method: `anchored` (the default), `neighbours` and others (docs/training.md).
        context: Whether words may be shifted by the words around them. False fits the table of words alone, in about
            a minute.
        active_words: Words that context may shift per text (`anchored`) or active words per text (other recipes), on
            average; None keeps the recipe's number.
        max_epochs: Passes over the training texts; None keeps the recipe's number.
        minutes: When to end training early, with the best weights so far; None sets no limit. With a limit, results
            depend on the machine's speed.
        class_weight: `balanced`, or a weight per class; they weigh the loss and the fit of the table.
        validation_fraction: Share of the texts that is held out to choose the best weights (at least 50 texts, but at
            most a quarter of a small set, and at most 2,000).
        device: auto, cpu, cuda or mps.
        random_state: A seed; the same seed and settings give the same weights, those of `lexical-sae train`. None
            draws a new one for each fit. NumPy's global state is neither used nor changed.
        verbose: Whether to show progress.

    Example:
        >>> clf = LexicalClassifier().fit(texts, labels)
        >>> clf.predict(more)
        >>> print(clf.explain(more[0]))
    """

    classes_: np.ndarray
    frequencies_: dict[str, int]

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, callbacks: Sequence[Any] = (), unlabelled: Any = None
    ) -> "LexicalClassifier":
        """Train on texts and their labels; nothing is written to disk.

        Args:
            X: A list, tuple, array, Series or one-column frame of texts.
            y: A label per text, of any type; or an indicator matrix (array, sparse matrix or frame of 0 and 1).
            sample_weight: How much each text counts; texts with a weight of 0 are left out.
            callbacks: Objects with methods of `lexical_sae.training.callbacks.Callback`.
            unlabelled: Further texts, without labels, that say what words mean (at most 5,000 are read). Worth it where
                labelled texts are few.

        Returns:
            The estimator itself.
        """
        texts = self._texts(X, y)
        check_consistent_length(texts, y)
        read = _marked_rows if is_indicator(y) else _labelled_rows
        rows, names, self.classes_ = read(texts, y, sample_weight, self.class_weight)
        self._fit_on(rows, names, OUTPUT_OF[read], callbacks, unlabelled)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Class-centred logits, a column per class; of two classes, how far the second is above the first.

        Of labels, how far the logit of each is above its threshold.
        """
        logits, output = self._logits(X), self._fitted_model().output
        if isinstance(output, Labels):
            return output.margins(torch.from_numpy(logits)).numpy()
        if len(self.classes_) == 2:
            return logits[:, 1] - logits[:, 0]
        return logits - logits.mean(1, keepdims=True)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class, or label, in the order of `classes_`, at the model's temperature."""
        model, logits = self._fitted_model(), self._logits(X)
        if isinstance(model.output, Labels):
            return scipy.special.expit(logits / model.temperature)
        return scipy.special.softmax(logits / model.temperature, axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each text; of labels, a matrix with a 1 for each that is decided for."""
        logits, output = self._logits(X), self._fitted_model().output
        if isinstance(output, Labels):
            return output.chosen(torch.from_numpy(logits)).numpy().astype(np.int64)
        return self.classes_[logits.argmax(1)]

    def explain(self, X: Any, target: Any = None, contrast: Any = None, **options: Any) -> Any:
        """Why each text got its label; for one string, one explanation.

        Args:
            X: Texts, or one text.
            target: The class to explain; by default the one predicted.
            contrast: A class to explain against: why the target and not this one.
            **options: Those of `lexical_sae.explain`, such as `method` or `effects`.

        Returns:
            Explanations: a list with `to_frame()` and `to_shap()`, whose members print, plot and draw themselves.
        """
        model = self._fitted_model()
        asked = {"target": self._name(target, "target"), "contrast": self._name(contrast, "contrast"), **options}
        if isinstance(X, str) and is_one_text(X):
            return explain(model, X, **asked)
        return explain(model, self._texts(X), **asked)

    def _name(self, label: Any, role: str) -> str | None:
        """The model's name of a class."""
        if label is None:
            return None
        for value in self.classes_:
            if value == label and label_text(value) == label_text(label):
                return label_text(value)
        raise SettingsError(f"{role} {label!r} is not a class; there are {', '.join(repr(v) for v in self.classes_)}")

    def _logits(self, X: Any) -> np.ndarray:
        """The logits of every text, in the order of `classes_`."""
        names = self._fitted_model().labels[CLASSIFY]
        return self._outputs(self._texts(X))[:, [names.index(label_text(value)) for value in self.classes_]]

    def _judged(self, texts: list[str], y: Any) -> Judged:
        output, names = self._fitted_model().output, [label_text(value) for value in self.classes_]
        if isinstance(output, Labels):
            gold, logits = indicator_of(y)[0].tolist(), torch.from_numpy(self._logits(texts))
            check_consistent_length(texts, gold)
            decided = [output.written(made) for made in output.decided(logits, names)]
            return Judged(task_rows(output.figures(logits, gold, names)), decided, output.labelled(gold, names))
        gold = [label_text(label) for label in labels_of(y)]
        check_consistent_length(texts, gold)
        decided = [label_text(label) for label in self.predict(texts)]
        wrong = sum(made != label for made, label in zip(decided, gold, strict=True))
        told = f"{wrong} of {len(texts)} texts are wrong"
        return Judged([("accuracy", f"{1 - wrong / max(1, len(texts)):.1%}", told)], decided, gold)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def _to_keep(self) -> dict[str, Any]:
        return {
            "classes": [json_value(value) for value in self.classes_.tolist()],
            "dtype": self.classes_.dtype.str,
            **super()._to_keep(),
        }

    def _take_back(self, kept: Mapping[str, Any]) -> None:
        names = kept.get("classes", sorted(self.model_.labels[CLASSIFY]))
        self.classes_ = np.array(names, dtype=kept.get("dtype"))
        super()._take_back(kept)


def _labelled_rows(
    texts: list[str], y: Any, sample_weight: Any, class_weight: Any
) -> tuple[TextSplit, tuple[str, ...], np.ndarray]:
    """Rows with a label each, the names of the classes as the command line orders them, and the classes as given."""
    labels, classes = classes_of(y)
    weights = weights_of(sample_weight, class_weight, labels)
    names = sorted_label_names(classes.names)
    ids = {name: i for i, name in enumerate(names)}
    given = None if weights is None else tuple(weights.tolist())
    rows = TextSplit(tuple(texts), tuple(ids[name] for name in classes.of_rows), weights=given)
    if given is not None and len({rows.labels[row] for row, weight in enumerate(given) if weight}) < 2:
        raise DataError("all texts with a weight are of one class; a classifier needs at least two classes")
    return rows, names, classes.values


def _marked_rows(
    texts: list[str], y: Any, sample_weight: Any, class_weight: Any
) -> tuple[TextSplit, tuple[str, ...], np.ndarray]:
    """Rows with a 0 or 1 per label, and the labels."""
    marks, values = indicator_of(y)
    if class_weight is not None:
        raise SettingsError("class_weight is for one label per text; with an indicator matrix, give sample_weight")
    weights = weights_of(sample_weight, None, np.zeros(len(texts)))
    rows = tuple(map(tuple, marks.tolist()))
    given = None if weights is None else tuple(weights.tolist())
    split = TextSplit(tuple(texts), rows, weights=given, strata_of=label_strata(rows))
    return split, tuple(label_text(value) for value in values), values


OUTPUT_OF = {_labelled_rows: Classes().kind, _marked_rows: Labels().kind}
"""The output kind of rows, by what reads them."""
