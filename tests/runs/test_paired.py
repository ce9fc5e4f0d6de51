import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.data import TextSplit
from lexical_sae.runs.inputs import text_digests
from lexical_sae.runs.measuring import paired as pairing
from lexical_sae.runs.measuring.paired import Decisions, holm, paired_difference

RIGHTS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=12)


def decisions(*marks: str, digest: str = "texts") -> list[Decisions]:
    return [Decisions(digest, tuple(mark == "1" for mark in run)) for run in marks]


def sign_test(won: int, lost: int) -> float:
    """Two-sided, by trying every outcome of as many fair coins."""
    heads = [sum(coins) for coins in itertools.product((0, 1), repeat=won + lost)]
    middle, off = (won + lost) / 2, abs(won - lost) / 2
    return sum(abs(count - middle) >= off for count in heads) / len(heads)


@given(RIGHTS)
def test_difference_and_p_are_those_counted_by_hand(rights):
    ours, theirs = (tuple(right[i] for right in rights) for i in (0, 1))
    found = paired_difference([Decisions("t", ours)], [Decisions("t", theirs)])
    won, lost = sum(a > b for a, b in rights), sum(a < b for a, b in rights)
    assert (found.won, found.lost) == (won, lost)
    assert found.mean == pytest.approx((won - lost) / len(rights))
    assert found.p == pytest.approx(sign_test(won, lost))
    assert found.low <= found.mean + 1e-9
    assert found.high >= found.mean - 1e-9


def test_the_example_of_the_docstring():
    found = paired_difference(decisions("11110"), decisions("00000"))
    assert (found.won, found.lost, found.p) == (4, 0, 0.125)


def test_texts_that_seeds_share_count_once():
    one = paired_difference(decisions("1100"), decisions("0000"))
    again = paired_difference(decisions("1100", "1100", "1100"), decisions("0000", "0000", "0000"))
    assert again == one
    mixed = paired_difference(decisions("1100", "0011"), decisions("0000", "1100"))
    assert (mixed.mean, mixed.won, mixed.lost) == (0.25, 2, 0), "texts 0 and 1 are won once and lost once"


def test_texts_that_two_draws_share_count_once():
    draws = [TextSplit(("a", "b", "a"), (0, 1, 0)), TextSplit(("b", "c", "a"), (1, 1, 0))]
    names = [tuple(text_digests(split)) for split in draws]
    assert len({*names[0], *names[1]}) == 4, "a, b, a again, c"
    ours, theirs = ([Decisions(f"draw {i}", (mark,) * 3, names[i]) for i in range(2)] for mark in (True, False))
    found = paired_difference(ours, theirs)
    assert (found.won, found.lost, found.mean) == (4, 0, 1)


def test_texts_of_their_own_count_each():
    ours = [*decisions("11", digest="a"), *decisions("11", digest="b")]
    theirs = [*decisions("00", digest="a"), *decisions("00", digest="b")]
    assert paired_difference(ours, theirs).won == 4


def test_other_texts_are_refused():
    with pytest.raises(ValueError, match="tested on other texts"):
        paired_difference(decisions("11"), decisions("11", digest="others"))


def test_the_interval_is_that_of_resampled_texts(monkeypatch):
    generator = np.random.default_rng(0)
    ours, theirs = generator.random(1200) < 0.8, generator.random(1200) < 0.7
    pairs = [Decisions("t", tuple(map(bool, side))) for side in (ours, theirs)]
    found = paired_difference([pairs[0]], [pairs[1]])
    difference = ours.astype(float) - theirs
    drawn = [generator.choice(difference, len(difference)).mean() for _ in range(4000)]
    assert (found.low, found.high) == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.004)
    monkeypatch.setattr(pairing, "AT_ONCE", 7)
    again = paired_difference([pairs[0]], [pairs[1]])
    assert (again.low, again.high) == pytest.approx((found.low, found.high))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_correction_keeps_order_and_lies_between_p_and_bonferroni(p_values):
    corrected = holm(p_values)
    for p, c in zip(p_values, corrected, strict=True):
        assert p <= c <= min(1.0, p * len(p_values))
    for (p, c), (q, d) in itertools.combinations(zip(p_values, corrected, strict=True), 2):
        assert (p - q) * (c - d) >= 0


def test_correction_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []
