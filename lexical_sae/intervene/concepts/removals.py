"""Removals between sparse layer and head: set words to zero, or project out a concept's directions."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from lexical_sae.intervene.concepts.word_matrix import Codes, EditedCodes

Edit = Callable[[Codes], EditedCodes]
"""One way to remove a concept."""


@dataclass(frozen=True)
class ZeroWords:
    """Words at zero in every text, as suppression in the gate does. Without words, nothing is changed."""

    dimensions: frozenset[int]

    @classmethod
    def of(cls, dimensions: Iterable[int]) -> "ZeroWords":
        """The removal of these dimensions."""
        return cls(frozenset(int(i) for i in dimensions))

    def __call__(self, codes: Codes) -> EditedCodes:
        kept = codes.copy()
        kept.data[np.isin(kept.indices, list(self.dimensions))] = 0
        kept.eliminate_zeros()
        return EditedCodes.untouched(kept)


@dataclass(frozen=True, eq=False)
class Erasure:
    """`x - directions.T @ (readings.T @ (x - mean))`: linear readings of a text, subtracted along directions."""

    mean: Float[ndarray, " V"]
    readings: Float[ndarray, "V R"]
    directions: Float[ndarray, "R V"]

    def __call__(self, codes: Codes) -> EditedCodes:
        return EditedCodes(codes, codes @ self.readings - self.mean @ self.readings, self.directions)
