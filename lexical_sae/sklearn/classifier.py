"""`LexicalClassifier`: texts to labels, with the words behind every decision."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special
from sklearn.base import ClassifierMixin
from sklearn.utils import check_consistent_length

from lexical_sae.data import TextDataset, TextSplit
from lexical_sae.data.cell_values import label_text, sorted_label_names
from lexical_sae.inference import explain
from lexical_sae.inference.reading import answers, is_one_text
from lexical_sae.intervene import SuppressedModel, WordTable, model_table
from lexical_sae.models.lexical_sae import CLASSIFY
from lexical_sae.report.classifier import ClassWord, classifier_html
from lexical_sae.report.page import Example, Figures, Page, page_html
from lexical_sae.runs.in_memory import train_model
from lexical_sae.sklearn.inputs import Classes, classes_of, weights_of
from lexical_sae.sklearn.splits import with_validation
from lexical_sae.sklearn.words import WordCodeEstimator
from lexical_sae.utils.errors import DataError, SettingsError
from lexical_sae.utils.files import write_text

BATCH = 32
FEWEST_WORDS, MOST_WORDS = 4, 24
"""Words of a class that a notebook shows, and of all classes together."""
LEAST_TEXTS = 5
"""Training texts that they should be in."""


class LexicalClassifier(ClassifierMixin, WordCodeEstimator):
    """A text classifier whose features are words, with exact explanations.

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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, callbacks: Sequence[Any] = ()) -> "LexicalClassifier":
        """Train on texts and their labels; nothing is written to disk.

        Args:
            X: A list, tuple, array, Series or one-column frame of texts.
            y: A label per text, of any type.
            sample_weight: How much each text counts; texts with a weight of 0 are left out.
            callbacks: Objects with methods of `lexical_sae.training.callbacks.Callback`.

        Returns:
            The estimator itself.
        """
        texts = self._texts(X, y)
        check_consistent_length(texts, y)
        labels, classes = classes_of(y)
        weights = weights_of(sample_weight, self.class_weight, labels)
        settings, seed = self._settings(without_context=not self.context), self._new_seed()
        with self._training(callbacks) as watchers:
            dataset = _dataset(texts, classes, weights, self.validation_fraction, seed)
            model, fitted = train_model(settings, dataset, seed=seed, device=self.device, watchers=watchers)
        self.model_, self.seed_, self.classes_ = model, seed, classes.values
        self._take_words((fitted.joined or dataset.train).texts)
        return self

    def _logits(self, X: Any) -> np.ndarray:
        """The logits of every text, in the order of `classes_`."""
        model = self._fitted_model()
        rows = answers(model, self._texts(X), BATCH, lambda read: list(read.state.logits.double().cpu().numpy()))
        logits = np.array(list(rows)).reshape(-1, len(model.labels[CLASSIFY]))
        return logits[:, [model.labels[CLASSIFY].index(label_text(value)) for value in self.classes_]]

    def decision_function(self, X: Any) -> np.ndarray:
        """Class-centred logits, a column per class; of two classes, how far the second is above the first."""
        logits = self._logits(X)
        if len(self.classes_) == 2:
            return logits[:, 1] - logits[:, 0]
        return logits - logits.mean(1, keepdims=True)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class, in the order of `classes_`, at the model's temperature."""
        return scipy.special.softmax(self._logits(X) / self._fitted_model().temperature, axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each text."""
        logits = self._logits(X)
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

    def lexicon(self) -> WordTable:
        """The table of words: every word with its weight for each class, the largest first.

        Weights are class-centred logits of a word without context in a text of sixteen tokens. `to_csv()` writes the
        table for a spreadsheet.
        """
        model = self._fitted_model()
        if model.literal is None:
            raise SettingsError(
                f"recipe {self.recipe!r} keeps no table: what a word contributes depends on the text. Save the model "
                "and see `lexical-sae corpus`, or fit with recipe='anchored'"
            )
        return model_table(model, self.frequencies_)

    def _html_repr(self) -> str:
        """What a notebook shows: fitted with a table, its strongest words; otherwise scikit-learn's diagram."""
        if not self.__sklearn_is_fitted__() or self.model_.literal is None:
            return super()._html_repr()
        table = self.lexicon()
        top = max(FEWEST_WORDS, MOST_WORDS // len(table.labels))
        classes = [(label, _strongest(table, place, top)) for place, label in enumerate(table.labels)]
        return classifier_html(type(self).__name__, classes, len(table.rows))

    def suppress(self, words: str | Iterable[str]) -> "LexicalClassifier":
        """A new fitted estimator that cannot use these words, or their case variants and plurals.

        This one keeps them. Both share their weights, and the columns of `transform`.
        """
        return self._with_model(SuppressedModel(self._fitted_model(), words))

    def report(self, X: Any, y: Any, path: str | Path, examples: int = 50) -> Path:
        """Write a page about texts that were not trained on: accuracy, words, and decisions with their reasons.

        Args:
            X: Texts.
            y: Their labels.
            path: The HTML file to write.
            examples: Texts to show at most, wrong decisions first.

        Returns:
            The file.
        """
        model, texts, gold = self._fitted_model(), self._texts(X), [label_text(label) for label in np.asarray(y)]
        check_consistent_length(texts, gold)
        predicted = [label_text(label) for label in self.predict(X)]
        wrong = [row for row in range(len(texts)) if predicted[row] != gold[row]]
        first = sorted(range(len(texts)), key=lambda row: predicted[row] == gold[row])[:examples]
        accuracy = 1 - len(wrong) / max(1, len(texts))
        rows = [
            ("accuracy", f"{accuracy:.1%}", f"{len(wrong)} of {len(texts)} texts are wrong"),
            ("words per text", f"{np.diff(self._code(texts).indptr).mean():.1f}", "active on average"),
        ]
        shown = [
            Example(why, gold[row]) for row, why in zip(first, explain(model, [texts[i] for i in first]), strict=True)
        ]
        page = Page("Decisions and their words", headline=Figures("These texts", rows), examples=shown)
        return write_text(Path(path).expanduser(), page_html(page))

    def _to_keep(self) -> dict[str, Any]:
        return {"classes": self.classes_.tolist(), "dtype": self.classes_.dtype.str, **super()._to_keep()}

    def _take_back(self, kept: Mapping[str, Any]) -> None:
        names = kept.get("classes", sorted(self.model_.labels[CLASSIFY]))
        self.classes_ = np.array(names, dtype=kept.get("dtype"))
        super()._take_back(kept)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")


def _strongest(table: WordTable, place: int, top: int) -> list[ClassWord]:
    """The words with the greatest weight for a class, those of several texts if there are any."""
    usable = [row for row in table.rows if not row.suppress and row.weights is not None]
    often = [row for row in usable if (row.texts or 0) >= LEAST_TEXTS] or usable
    words = [ClassWord(row.word, row.weights[place], row.texts) for row in often if row.weights is not None]
    return [word for word in sorted(words, key=lambda word: -word.weight)[:top] if word.weight > 0]


def _dataset(
    texts: list[str], classes: Classes, weights: np.ndarray | None, validation_fraction: float, seed: int
) -> TextDataset:
    """The rows as the command line has them, without test rows; rows without weight are left out."""
    names = sorted_label_names(classes.names)
    ids = {name: i for i, name in enumerate(names)}
    given = None if weights is None else tuple(weights.tolist())
    rows = TextSplit(tuple(texts), tuple(ids[name] for name in classes.of_rows), weights=given)
    if given is not None and min(given) == 0:
        rows = rows.take([row for row, weight in enumerate(given) if weight])
    if len(set(rows.labels)) < 2:
        raise DataError("all texts with a weight are of one class; a classifier needs at least two classes")
    carved = with_validation(rows, names, TextSplit((), ()), validation_fraction, seed)
    return TextDataset("texts", names, carved.train, carved.validation, carved.test, carved.notes)
