"""A model with literal words as a `ContextModel`: every word has an explicit default, and the rest is context."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from lexical_sae.evaluation.names.lexical import LexicalSAENames
from lexical_sae.evaluation.names.model import NamedWord, Reading
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.literal_reading import default_activation
from lexical_sae.models.table_head import TableHead


class LiteralNames(LexicalSAENames):
    """The literal words of a text; those that the model never met get a dimension when they are first read."""

    def decide(self, texts: Sequence[Sequence[NamedWord]]) -> Float[ndarray, "T C"]:
        """The bias plus the contributions of the given features, which may be their defaults."""
        bias = self._centered(self._table.class_bias)
        return np.array([bias + np.sum([word.contributions for word in words], axis=0) for words in texts])

    def default_contributions(self, readings: Sequence[Reading]) -> list[list[tuple[float, ...]]]:
        """The rows of the table times the default activation of each text's words."""
        rows = self._centered(self._table.word_vectors)
        lengths = torch.tensor([len(ids) for ids in self._encode([reading.text for reading in readings]).tokens.ids])
        return [
            [tuple((float(scale) * rows[word.dimension]).tolist()) for word in reading.words]
            for reading, scale in zip(readings, default_activation(lengths), strict=True)
        ]

    @property
    def _table(self) -> TableHead:
        head = self.model.head()
        assert isinstance(head, TableHead)
        return head

    @staticmethod
    def _centered(values: Tensor) -> Float[ndarray, "..."]:
        return (values - values.mean(-1, keepdim=True)).double().cpu().numpy()


def names_of(model: LexicalSAE) -> LexicalSAENames:
    """The model as the name tests ask for it."""
    return LexicalSAENames(model) if model.literal is None else LiteralNames(model)
