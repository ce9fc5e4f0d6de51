"""Planted changes are named, and two halves of one corpus stay quiet."""

from datetime import datetime

import numpy as np
import pytest
from scipy.stats import false_discovery_control

from benchmarks.scored_table import Invented, write_scored
from lexical_sae.scale.audit.audit import audit
from lexical_sae.scale.audit.drift import drift
from lexical_sae.scale.audit.figures import chance_of_split
from lexical_sae.scale.audit.scored import Scored
from lexical_sae.scale.audit.settings import Asked
from lexical_sae.scale.audit.words import count_words

SPLITS = 12
MIDDLE = datetime(2026, 7, 1)


def changes(path, asked):
    with Scored(path, asked) as scored:
        count_words(scored)
        return drift(scored, asked.level)


def named(found):
    return {str(word) for word, is_found in zip(found.words["word"], found.words["is_found"], strict=True) if is_found}


def test_planted_changes_are_found_and_no_others(planted):
    found = changes(planted, Asked(time="date", since=MIDDLE))
    assert named(found) == {"recall", "word12"}
    assert found.shares["is_found"].sum() == 0
    words = found.words
    for i in np.flatnonzero(words["is_found"]):
        by_share = words["word"][i] == "recall"
        assert (words["share_q_value"][i] < 0.05, words["mean_q_value"][i] < 0.05) == (by_share, not by_share)
        assert words["change"][i] > 0


def test_a_planted_change_between_two_tables_is_found(planted, tmp_path):
    before = write_scored(tmp_path / "before", Invented(4000, seed=7, vocabulary=400))
    found = changes(planted, Asked(time="date", since=MIDDLE, against=str(before)))
    assert found.before == 4000
    assert named(found) == {"recall", "word12"}


def test_two_halves_of_one_corpus_stay_quiet(tmp_path):
    table = write_scored(tmp_path / "scored", Invented(3000, vocabulary=300, splits=SPLITS))
    halves = [changes(table, Asked(time=f"date_{i}", since=MIDDLE)) for i in range(SPLITS)]
    assert sum(found.found > 0 for found in halves) <= 1
    # Without the control every split would have its findings.
    smallest = [min(found.words["share_p_value"].min(), found.words["mean_p_value"].min()) for found in halves]
    assert sum(p < 0.05 for p in smallest) >= SPLITS - 1


def test_false_findings_are_as_rare_as_they_should_be_over_many_seeds():
    """By counts alone: words of all frequencies, sides of unequal size, and no change anywhere."""
    generator, alarms = np.random.default_rng(3), 0
    marked = np.maximum(10, 20_000 / np.arange(2, 800)).astype(int)
    for _ in range(400):
        inside = generator.hypergeometric(marked, 40_000 - marked, 4000)
        p_values = chance_of_split(inside, marked, np.full_like(marked, 4000), np.full_like(marked, 40_000))
        alarms += bool((false_discovery_control(p_values, method="by") <= 0.05).any())
    assert alarms <= 0.05 * 400


@pytest.mark.slow
def test_the_halves_of_many_corpora_stay_quiet(tmp_path):
    alarms = 0
    for seed in range(20):
        table = write_scored(tmp_path / str(seed), Invented(5000, seed=seed, vocabulary=2000, splits=10))
        alarms += sum(changes(table, Asked(time=f"date_{i}", since=MIDDLE)).found > 0 for i in range(10))
    assert alarms <= 10


def test_a_copy_of_the_table_has_not_changed(planted):
    found = audit(planted, Asked(against=str(planted))).drift
    assert found.found == 0
    assert np.abs(found.words["change"]).max() < 1e-9
