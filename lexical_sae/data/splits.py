"""Train, validation and test from what a source holds: missing splits are held out, then all are subsampled.

1. No test split: a stratified fifth of train becomes it.
2. No validation split: a stratified tenth of train (50 to 2,000) becomes it; equal texts stay on one side.
3. Train, validation and test are subsampled, and train is shuffled (files are often sorted by class).

Steps 1 and 2 use `split_seed`, step 3 `seed`: runs with other seeds or sizes report on the same held-out splits.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic

import numpy as np

from lexical_sae.data.examples import S, Source, TextSplit
from lexical_sae.data.sampling import (
    complement,
    held_out_test_size,
    sample_rows,
    stratified_hold_out,
    stratified_subsample,
    validation_size,
)
from lexical_sae.utils.errors import DataError


@dataclass(frozen=True)
class Sizes:
    """How many rows of each split (-1: all), and the seeds."""

    train: int = -1
    validation: int = -1
    test: int = -1
    seed: int = 0
    """Picks the subsamples and the order of train."""
    split_seed: int = 0
    """Holds out the splits the source lacks."""

    def __post_init__(self) -> None:
        for name in ("train", "validation", "test"):
            if (size := getattr(self, name)) != -1 and size < 1:
                raise DataError(f"{name}_samples is {size}; give a positive number, or -1 for the full split")


@dataclass(frozen=True)
class Carved(Generic[S]):
    """The three splits, and what was decided on the way."""

    train: S
    validation: S
    test: S
    notes: tuple[str, ...]


@dataclass(frozen=True)
class HoldOut:
    """Train rows to set aside, and train rows to drop because they would give the others away."""

    held_out: list[int]
    dropped: list[int] = field(default_factory=list)
    how: str = "stratified: a tenth of train, but 50 to 2,000 rows and at most a quarter"


ValidationRule = Callable[[S, tuple[str, ...], np.random.Generator], HoldOut]


def stratified_tenth(train: S, groups: tuple[str, ...], rng: np.random.Generator) -> HoldOut:
    """The usual validation: a stratified tenth of train, groups kept whole."""
    return HoldOut(stratified_hold_out(train.strata(), validation_size(len(train)), rng, groups))


def carve(source: Source[S], sizes: Sizes, validation_rule: ValidationRule[S] = stratified_tenth) -> Carved[S]:
    """Three splits that share no text which the source itself did not share."""
    notes = list(source.notes)
    train, groups = source.train, source.groups or tuple(source.train.keys())
    test, validation = source.test, source.validation
    if test is None:
        rng = np.random.default_rng([sizes.split_seed, 1])
        held_out = stratified_hold_out(train.strata(), held_out_test_size(len(train)), rng, groups)
        _require_rows(held_out, "test", len(train))
        notes.append(
            f"test: {len(held_out)} rows carved from {len(train)} (a stratified fifth, seed {sizes.split_seed})"
        )
        test, train, groups = _set_aside(train, groups, held_out, drop=[])
    if validation is None:
        rng = np.random.default_rng([sizes.split_seed, 2])
        plan = validation_rule(train, groups, rng)
        _require_rows(plan.held_out, "validation", len(train))
        validation, rest, groups = _set_aside(train, groups, plan.held_out, plan.dropped)
        dropped = f"; {len(plan.dropped)} train rows dropped" if plan.dropped else ""
        notes.append(
            f"validation: {len(validation)} rows carved from train ({plan.how}, seed {sizes.split_seed}){dropped}, "
            f"{len(rest)} train rows left"
        )
        train = rest
    notes += _overlap_notes(train, validation, test)
    validation = _subsample(validation, sizes.validation, "validation", [sizes.seed, 4], notes)
    test = _subsample(test, sizes.test, "test", [sizes.seed, 5], notes)
    train = _subsample(train, sizes.train, "train", [sizes.seed, 3], notes)
    train = train.take(np.random.default_rng([sizes.seed, 6]).permutation(len(train)).tolist())
    return Carved(train, validation, test, tuple(notes))


def _require_rows(held_out: list[int], kind: str, num_rows: int) -> None:
    if not held_out:
        raise DataError(
            f"{num_rows} rows are too few, or too much alike, to carve a {kind} split from; "
            f"add rows, or give a {kind} file of your own"
        )


def _set_aside(train: S, groups: tuple[str, ...], held_out: list[int], drop: list[int]) -> tuple[S, S, tuple[str, ...]]:
    """(held-out rows, the rest of train, the rest's groups)."""
    rest = complement([*held_out, *drop], len(train))
    return train.take(held_out), train.take(rest), tuple(groups[i] for i in rest)


def _subsample(split: S, size: int, name: str, seed: list[int], notes: list[str]) -> S:
    if size == -1 or size == len(split):
        return split
    if size > len(split):
        notes.append(f"{name}: {size} rows asked for, all {len(split)} taken")
        return split
    chosen = stratified_subsample(split.strata(), size, np.random.default_rng(seed))
    notes.append(f"{name}: {size} of {len(split)} rows (stratified, seed {seed[0]})")
    lost = len(set(split.strata())) - len({split.strata()[i] for i in chosen})
    if lost and not (isinstance(split, TextSplit) and split.strata_of):
        notes.append(f"{name}: {lost} classes have no row among the {size}; ask for more rows")
    return split.take(chosen)


def _overlap_notes(train: S, validation: S, test: S) -> list[str]:
    """Splits are kept as they were given or published, but shared texts are reported."""
    keys, in_validation, in_test = train.keys(), validation.keys(), set(test.keys())
    pairs = (
        ("train texts also occur in validation", keys, set(in_validation)),
        ("train texts also occur in test", keys, in_test),
        ("validation texts also occur in test", in_validation, in_test),
    )
    counts = [(sum(key in others for key in ours), what) for what, ours, others in pairs]
    notes = [f"{count} {what} (kept as given)" for count, what in counts if count]
    if doubles := len(keys) - len(set(keys)):
        notes.append(f"{doubles} train texts are duplicates of another train text")
    return notes


def draw(split: TextSplit, most: int, seed: int) -> TextSplit:
    """Up to `most` texts at random, in their order; 0 takes all."""
    rows = sample_rows(len(split), most, seed)
    return split if len(rows) == len(split) else split.take(rows)
