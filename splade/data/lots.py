"""Some rows of many, by lot."""

from collections.abc import Sequence

import numpy as np


def rows_by_lot(count: int, most: int, seed: int | Sequence[int]) -> list[int]:
    """At most `most` of `count` rows, drawn with the seed, in their order; 0 takes all.

    Example: `rows_by_lot(2, 5, seed=0) -> [0, 1]`
    """
    if not most or most >= count:
        return list(range(count))
    return sorted(np.random.default_rng(seed).permutation(count)[:most].tolist())
