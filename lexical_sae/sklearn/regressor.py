"""`LexicalRegressor`: texts to numbers, with the words that add up to each."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sklearn.base import RegressorMixin
from sklearn.utils import check_consistent_length

from lexical_sae.data import TextSplit
from lexical_sae.data.targets import number_strata
from lexical_sae.inference import explain
from lexical_sae.inference.reading import is_one_text
from lexical_sae.outputs import Number
from lexical_sae.sklearn.deciding import DecidingEstimator, Judged, task_rows
from lexical_sae.sklearn.inputs import name_of, numbers_of, weights_of
from lexical_sae.utils.errors import SavedFileError


class LexicalRegressor(RegressorMixin, DecidingEstimator):
    """A regression on texts whose features are words: contributions and a bias sum to the predicted number.

    The loss is the squared error. Ordered classes, such as one to five stars, may be fitted as numbers and rounded.

    Args:
        encoder: `minilm`, `granite` or `mpnet`, which install from PyPI, the folder of a masked language model, or a
            hub name.
        context: Whether words may be shifted by the words around them. False fits the table of words alone.
        active_words: Words that context may shift per text, on average; None keeps the recipe's number.
        max_epochs: Passes over the training texts; None keeps the recipe's number.
        minutes: When to end training early, with the best weights so far; None sets no limit.
        validation_fraction: Share of the texts that is held out to choose the best weights (at least 50 texts, but at
            most a quarter of a small set, and at most 2,000).
        device: auto, cpu, cuda or mps.
        random_state: A seed, as in `LexicalClassifier`.
        verbose: Whether to show progress.

    Example:
        >>> reg = LexicalRegressor().fit(texts, stars)
        >>> reg.predict(more)
        >>> print(reg.explain(more[0]))
    """

    def __init__(
        self,
        encoder: str = "minilm",
        context: bool = True,
        active_words: float | None = None,
        max_epochs: int | None = None,
        minutes: float | None = None,
        validation_fraction: float = 0.1,
        device: str = "auto",
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.encoder = encoder
        self.context = context
        self.active_words = active_words
        self.max_epochs = max_epochs
        self.minutes = minutes
        self.validation_fraction = validation_fraction
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    recipe = "anchored"
    """Numbers are for models with literal words."""

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, callbacks: Sequence[Any] = (), unlabelled: Any = None
    ) -> "LexicalRegressor":
        """Train on texts and their numbers; nothing is written to disk.

        Args:
            X: A list, tuple, array, Series or one-column frame of texts.
            y: A number per text.
            sample_weight: How much each text counts; texts with a weight of 0 are left out.
            callbacks: Objects with methods of `lexical_sae.training.callbacks.Callback`.
            unlabelled: Further texts, without labels, that say what words mean (at most 5,000 are read). Worth it where
                labelled texts are few.

        Returns:
            The estimator itself.
        """
        texts = self._texts(X, y)
        check_consistent_length(texts, y)
        numbers = numbers_of(y)
        weights = weights_of(sample_weight, None, numbers)
        given = None if weights is None else tuple(weights.tolist())
        labels = tuple(numbers.tolist())
        rows = TextSplit(tuple(texts), labels, weights=given, strata_of=number_strata(labels))
        self._fit_on(rows, (name_of(y),), Number().kind, callbacks, unlabelled)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The number of each text."""
        return self._number().numbers(torch.from_numpy(self._outputs(self._texts(X)))).numpy()

    def explain(self, X: Any, **options: Any) -> Any:
        """Which words add up to the number of each text; for one string, one explanation.

        Args:
            X: Texts, or one text.
            **options: Those of `lexical_sae.explain`, such as `effects`.

        Returns:
            Explanations, as `LexicalClassifier.explain` gives them.
        """
        model = self._fitted_model()
        if isinstance(X, str) and is_one_text(X):
            return explain(model, X, **options)
        return explain(model, self._texts(X), **options)

    def _number(self) -> Number:
        output = self._fitted_model().output
        if not isinstance(output, Number):
            raise SavedFileError(f"this model has {output.title}; load it as a LexicalClassifier")
        return output

    def _judged(self, texts: list[str], y: Any) -> Judged:
        output, gold = self._number(), numbers_of(y).tolist()
        check_consistent_length(texts, gold)
        logits = torch.from_numpy(self._outputs(texts))
        decided = [output.written(made) for made in output.decided(logits, ())]
        return Judged(task_rows(output.figures(logits, gold, ())), decided, output.labelled(gold, ()))
