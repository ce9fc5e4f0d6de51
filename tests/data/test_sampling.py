from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.data.sampling import complement, stratified_hold_out, stratified_subsample, validation_size

LABELS = st.lists(st.integers(0, 4), min_size=1, max_size=120)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(LABELS, st.integers(0, 150), st.integers(0, 5))
def test_subsample_has_the_size_asked_for_and_no_row_twice(labels, size, seed):
    chosen = stratified_subsample(labels, size, rng(seed))
    assert len(chosen) == min(size, len(labels)) == len(set(chosen))


@given(LABELS, st.integers(1, 150))
def test_subsample_keeps_classes_in_proportion(labels, size):
    size = min(size, len(labels))
    counts, chosen = Counter(labels), Counter(labels[i] for i in stratified_subsample(labels, size, rng()))
    if size >= len(counts):
        assert set(chosen) == set(counts)
    if min(counts.values()) * size >= len(labels):  # no class is so rare that it was lifted to one row
        assert all(abs(chosen[c] - size * counts[c] / len(labels)) < 1 for c in counts)


@given(LABELS, st.integers(0, 150), st.data())
def test_hold_out_never_splits_a_group_and_leaves_every_class_outside(labels, size, data):
    groups = [f"{label}-{data.draw(st.integers(0, 10))}" for label in labels]
    held_out = stratified_hold_out(labels, size, rng(), groups)
    outside = complement(held_out, len(labels))
    assert not {groups[i] for i in held_out} & {groups[i] for i in outside}
    assert {labels[i] for i in outside} == set(labels)
    assert len(held_out) <= size
    assert sorted(held_out + outside) == list(range(len(labels)))


def test_hold_out_without_groups_fills_its_size():
    labels = [0] * 70 + [1] * 30
    held_out = stratified_hold_out(labels, 20, rng())
    assert Counter(labels[i] for i in held_out) == {0: 14, 1: 6}


def test_the_seed_decides_the_choice():
    labels = [0, 1] * 50
    assert stratified_subsample(labels, 10, rng(1)) == stratified_subsample(labels, 10, rng(1))
    assert stratified_subsample(labels, 10, rng(1)) != stratified_subsample(labels, 10, rng(2))


@pytest.mark.parametrize(("rows", "size"), [(67_349, 2_000), (5_000, 500), (300, 50), (80, 20)])
def test_validation_is_a_tenth_within_bounds(rows, size):
    assert validation_size(rows) == size


def test_a_negative_size_is_refused():
    with pytest.raises(ValueError, match="cannot choose -3 rows"):
        stratified_subsample([0, 1], -3, rng())
