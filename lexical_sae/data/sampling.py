"""Seeded choice of rows, at random or with the classes in proportion: pure functions on counts and lists of labels."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from lexical_sae.utils.errors import DataError


def validation_size(num_rows: int) -> int:
    """A tenth of the rows, 50 to 2,000, but never more than a quarter of a small set.

    Example: 67,349 -> 2,000; 5,000 -> 500; 300 -> 50; 80 -> 20
    """
    return min(max(50, num_rows // 10), 2_000, num_rows // 4)


def held_out_test_size(num_rows: int) -> int:
    """A fifth of the rows, for sources that have no test split of their own."""
    return num_rows // 5


def sample_rows(count: int, most: int, seed: int | Sequence[int]) -> list[int]:
    """At most `most` of `count` rows, drawn with the seed, in their order; 0 takes all.

    Example: `sample_rows(2, 5, seed=0) -> [0, 1]`
    """
    if not most or most >= count:
        return list(range(count))
    return sorted(np.random.default_rng(seed).permutation(count)[:most].tolist())


def stratified_subsample(labels: Sequence[int], size: int, rng: np.random.Generator) -> list[int]:
    """Sorted indices of `size` rows with the classes in proportion, each class at least once where `size` allows.

    Example: labels=[0, 0, 0, 0, 1, 1], size=3 -> two rows of class 0, one of class 1
    """
    return _sample(labels, size, rng, groups=None, leave=0)


def stratified_hold_out(
    labels: Sequence[int], size: int, rng: np.random.Generator, groups: Sequence[str] | None = None
) -> list[int]:
    """Sorted indices of at most `size` rows to set aside, the classes in proportion.

    Every class keeps at least one row outside. With `groups`, rows of one group are set aside together or not
    at all, so that no group straddles the two sides.
    """
    return _sample(labels, size, rng, groups, leave=1)


def complement(indices: Sequence[int], num_rows: int) -> list[int]:
    """The indices below `num_rows` that are not in `indices`, sorted."""
    chosen = set(indices)
    return [i for i in range(num_rows) if i not in chosen]


def _sample(
    labels: Sequence[int], size: int, rng: np.random.Generator, groups: Sequence[str] | None, leave: int
) -> list[int]:
    if size < 0:
        raise DataError(f"cannot choose {size} rows; give a size of 0 or more")
    members = _rows_by_group(labels, groups)
    # A group counts for the class of its first row: conflicting labels inside a group are rare, and stay together.
    by_class: dict[int, list[list[int]]] = defaultdict(list)
    for rows in members:
        by_class[labels[rows[0]]].append(rows)
    classes = sorted(by_class)
    counts = [sum(map(len, by_class[c])) for c in classes]
    chosen: list[int] = []
    for label, quota in zip(classes, _quotas(counts, size, leave), strict=True):
        taken = 0
        for position in rng.permutation(len(by_class[label])):
            rows = by_class[label][position]
            if taken + len(rows) <= quota:
                chosen += rows
                taken += len(rows)
    return sorted(chosen)


def _rows_by_group(labels: Sequence[int], groups: Sequence[str] | None) -> list[list[int]]:
    if groups is None:
        return [[i] for i in range(len(labels))]
    by_key: dict[str, list[int]] = defaultdict(list)
    for i, key in enumerate(groups):
        by_key[key].append(i)
    return list(by_key.values())


def _quotas(counts: Sequence[int], size: int, leave: int) -> list[int]:
    """Rows per class by largest remainder, at most `count - leave` and at least one where `size` allows.

    Example: counts=[4, 2], size=3, leave=0 -> [2, 1]
    """
    caps = [max(0, count - leave) for count in counts]
    size = min(size, sum(caps))
    ideal = [size * count / max(1, sum(counts)) for count in counts]
    floor_one = int(size >= sum(cap > 0 for cap in caps))
    quotas = [min(cap, max(int(share), floor_one)) for share, cap in zip(ideal, caps, strict=True)]
    while sum(quotas) < size:
        open_classes = [c for c in range(len(counts)) if quotas[c] < caps[c]]
        quotas[max(open_classes, key=lambda c: ideal[c] - quotas[c])] += 1
    while sum(quotas) > size:
        spare = [c for c in range(len(counts)) if quotas[c] > floor_one]
        quotas[max(spare, key=lambda c: quotas[c] - ideal[c])] -= 1
    return quotas
