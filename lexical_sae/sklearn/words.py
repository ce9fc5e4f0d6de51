"""The sparse word code of a model as scikit-learn's transformers give it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import TransformerMixin
from sklearn.utils._set_output import _get_output_config

from lexical_sae.data.batches import tokenize
from lexical_sae.inference.reading import ReadTexts, answers
from lexical_sae.intervene import FREQUENCIES_FILE
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.sklearn.estimator import LexicalEstimator
from lexical_sae.sklearn.inputs import texts_of
from lexical_sae.training.word_table import document_frequencies
from lexical_sae.utils.errors import DataError

BATCH = 32


class WordCodeEstimator(TransformerMixin, LexicalEstimator):
    """An estimator that gives a column per word.

    Columns are the words that the fitted model can use. Words that only later texts have get no column: they count in
    predictions, and explanations name them.
    """

    frequencies_: dict[str, int]
    word_ids_: np.ndarray

    def __init__(
        self,
        encoder: str = "minilm",
        recipe: str = "anchored",
        context: bool = True,
        active_words: float | None = None,
        max_epochs: int | None = None,
        minutes: float | None = None,
        class_weight: Any = None,
        validation_fraction: float = 0.1,
        device: str = "auto",
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.encoder = encoder
        self.recipe = recipe
        self.context = context
        self.active_words = active_words
        self.max_epochs = max_epochs
        self.minutes = minutes
        self.class_weight = class_weight
        self.validation_fraction = validation_fraction
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _texts(self, X: Any, y: Any = None) -> list[str]:
        """The texts in X; with y, those to fit on."""
        texts = texts_of(X)
        if y is not None and not texts:
            raise DataError("X has no text: found array with 0 sample(s) while a minimum of 1 is required")
        return texts

    def _take_words(self, texts: Sequence[str]) -> None:
        """Note the columns, and how many of the training texts have each literal word."""
        model = self.model_
        self.word_ids_, self.frequencies_ = _open_words(model), {}
        if model.literal is not None:
            tokenized = tokenize(model.tokenizer, texts, model.max_length)
            self.frequencies_ = document_frequencies(model, tokenized)
            # The tokenizer has words that no training text has.
            is_met = [model.dimensions[i].name in self.frequencies_ for i in self.word_ids_.tolist()]
            self.word_ids_ = self.word_ids_[np.array(is_met, dtype=bool)]

    def transform(self, X: Any) -> Any:
        """The activation of every word in every text.

        Args:
            X: Texts.

        Returns:
            A sparse CSR matrix with a column per word; a frame with sparse columns after
            `set_output(transform="pandas")`.
        """
        self._fitted_model()
        code = self._code(self._texts(X))
        container = _get_output_config("transform", self)["dense"]
        if container == "default":
            return code
        if container != "pandas":
            return code.toarray()
        import pandas as pd

        names = pd.Index(self.get_feature_names_out(), dtype=object)
        # Lists have an `index` too, which is none.
        index = X.index if isinstance(X, pd.Series | pd.DataFrame) else None
        return pd.DataFrame.sparse.from_spmatrix(code, index=index, columns=names)

    def _code(self, texts: Sequence[str]) -> scipy.sparse.csr_matrix:
        model = self._fitted_model()
        columns = np.full(int(self.word_ids_.max(initial=-1)) + 1, -1)
        columns[self.word_ids_] = np.arange(len(self.word_ids_))

        def entries(read: ReadTexts) -> list[tuple[np.ndarray, np.ndarray]]:
            code = read.state.code
            ids, values = code.ids.cpu().numpy(), code.values.detach().cpu().numpy()
            texts = [code.text(row) for row in range(len(code))]
            return [_in_columns(ids[part], values[part], columns) for part in texts]

        rows = list(answers(model, texts, BATCH, entries))
        lengths = [len(ids) for ids, _ in rows]
        ids = np.concatenate([np.empty(0, dtype=np.int64), *(ids for ids, _ in rows)])
        values = np.concatenate([np.empty(0, dtype=np.float32), *(values for _, values in rows)])
        shape = (len(rows), len(self.word_ids_))
        return scipy.sparse.csr_matrix((values, ids, np.cumsum([0, *lengths])), shape=shape)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:  # noqa: ARG002
        """The word of each column of `transform`."""
        dimensions = self._fitted_model().dimensions
        return np.array([dimensions[i].name for i in self.word_ids_.tolist()], dtype=object)

    def _attached(self) -> dict[str, str]:
        if not self.frequencies_:
            return {}
        return {FREQUENCIES_FILE: json.dumps(self.frequencies_, ensure_ascii=False, indent=0) + "\n"}

    def _to_keep(self) -> dict[str, Any]:
        return {"columns": self.word_ids_.tolist(), "frequencies": self.frequencies_}

    def _take_back(self, kept: Mapping[str, Any]) -> None:
        self.word_ids_ = np.array(kept["columns"], dtype=np.int64) if "columns" in kept else _open_words(self.model_)
        self.frequencies_ = dict(kept.get("frequencies", {}))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        # Activations are what they are, whatever the texts came as.
        tags.transformer_tags.preserves_dtype = []
        return tags


def _open_words(model: LexicalSAE) -> np.ndarray:
    return (~model.gate.closed).nonzero().flatten().cpu().numpy()


def _in_columns(ids: np.ndarray, values: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The entries that have a column, in the order of columns."""
    known = ids < len(columns)
    found = columns[ids[known]]
    kept = found >= 0
    order = np.argsort(found[kept], kind="stable")
    return found[kept][order], values[known][kept][order]
