"""Which rows are held out to choose the best weights: as the command line does, but for the share."""

import warnings
from numbers import Real

import numpy as np

from lexical_sae.data.examples import S, Source
from lexical_sae.data.splits import Carved, HoldOut, Sizes, ValidationRule, carve, stratified_hold_out
from lexical_sae.utils.errors import SettingsError

LEAST, MOST = 50, 2_000


def with_validation(rows: S, names: tuple[str, ...], nothing: S, fraction: float, seed: int) -> Carved[S]:
    """Training and validation rows, as the command line would carve them with the same seed; `nothing` is tested on.

    Rows that are too few or too much alike are validated on themselves, with a warning.
    """
    rule, sizes = held_out(fraction), Sizes(seed=seed)
    found = rule(rows, tuple(rows.keys()), np.random.default_rng([sizes.split_seed, 2]))
    if not found.held_out:
        warnings.warn(
            f"{len(rows)} rows are too few, or too much alike, to hold some out: the best weights are chosen on the "
            "training rows themselves, and confidences are measured there",
            stacklevel=4,
        )
    return carve(Source(names, rows, None if found.held_out else rows, nothing), sizes, rule)


def held_out(fraction: float) -> ValidationRule:
    """A stratified share of the rows, at least 50 of a set that is large enough and at most 2,000."""
    if not isinstance(fraction, Real) or not 0 < fraction < 1:
        raise SettingsError(f"validation_fraction is {fraction!r}; give a share between 0 and 1, such as 0.1")

    def rule(train: S, groups: tuple[str, ...], rng: np.random.Generator) -> HoldOut:
        size = validation_size(len(train), fraction)
        return HoldOut(stratified_hold_out(train.strata(), size, rng, groups), how=f"a stratified {fraction:.0%}")

    return rule


def validation_size(num_rows: int, fraction: float) -> int:
    """How many rows are held out. Example: 5,000 rows, 0.1 -> 500; 300 -> 50; 80 -> 20, a quarter; 80, 0.5 -> 40"""
    # Rounding must not lose a row of a share such as 0.1.
    asked = int(fraction * num_rows + 1e-9)
    return min(max(LEAST, asked), MOST, max(num_rows // 4, asked))
