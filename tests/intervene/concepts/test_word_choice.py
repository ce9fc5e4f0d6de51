import numpy as np
import pytest
from scipy.sparse import csr_array

from lexical_sae.data.sources.planted import NEGATIVE, POSITIVE, planted_bias
from lexical_sae.intervene.concepts.bias_audit import audit, decisions_on, groups_of
from lexical_sae.intervene.concepts.candidates import suspect_words
from lexical_sae.intervene.concepts.fairness import Group
from lexical_sae.intervene.concepts.removals import ZeroWords
from lexical_sae.intervene.concepts.word_choice import (
    Bounds,
    GroupTexts,
    choose_words,
    gaps_by_chance,
    tuned_threshold,
)
from lexical_sae.intervene.concepts.word_matrix import EditedCodes, Predictions, Readings
from tests.intervene.concepts.bags import Bag, linear

HONEST, PLANTED = 0, slice(1, 4)


def texts(words: int, size: int = 600, seed: int = 0) -> tuple[GroupTexts, np.ndarray]:
    """A group whose texts hold one of `words` biased words each; column 0 tells the truth, the last six are noise."""
    rng = np.random.default_rng(seed)
    truth, member = rng.random(size) < 0.5, rng.random(size) < 0.5
    dense = np.zeros((size, 10))
    dense[:, HONEST] = truth
    dense[np.arange(size), 1 + rng.integers(0, max(words, 1), size)] = member * (words > 0)
    dense[:, 4:] = rng.random((size, 6)) < 0.3
    weights = np.zeros(10)
    weights[HONEST], weights[PLANTED] = 2.0, 1.0
    return GroupTexts(csr_array(dense), truth, (Group("sailors", member, ~member),)), weights


@pytest.mark.parametrize("words", [1, 2, 3])
def test_the_planted_words_are_chosen_and_no_others(words):
    given, weights = texts(words)
    choice = choose_words(given, linear(weights), range(10))
    assert sorted(choice.words) == list(range(1, 1 + words))
    assert choice.is_reached
    assert choice.is_smallest == (words <= 2)
    assert choice.before.gap > 0.9
    assert choice.after.gap == 0


def test_words_that_all_say_the_same_are_found_though_no_one_of_them_changes_a_label():
    given, weights = texts(0)
    dense = given.codes.toarray()
    together = slice(1, 5)
    dense[:, together] = given.groups[0].member[:, None]
    weights[together] = 1.0
    choice = choose_words(GroupTexts(csr_array(dense), given.truth, given.groups), linear(weights), range(10))
    assert choice.is_reached
    assert sorted(choice.words) == [1, 2, 3, 4]


def test_a_set_that_does_not_reach_the_bound_has_no_word_too_many():
    given, weights = texts(3)
    choice = choose_words(given, linear(weights), [1, 2, *range(4, 10)])
    assert not choice.is_reached
    assert sorted(choice.words) == [1, 2]
    assert choice.after.gap < choice.before.gap


def test_without_bias_no_word_is_removed():
    alarms = 0
    for seed in range(40):
        given, weights = texts(0, seed=seed)
        weights[4:] = 0.5  # noisy predictions, with gaps by chance
        choice = choose_words(given, linear(weights), (), Bounds(epsilon=0.0))
        assert choice.before.gap > 0
        alarms += "nothing to remove" not in choice.verdict
    # One in a hundred is expected; five of forty would be beyond chance.
    assert alarms < 5


def test_rates_that_differ_where_scores_do_not_are_no_reason_to_remove_a_word():
    given, _ = texts(1)
    member, even = given.groups[0].member, np.arange(len(given.truth)) % 2 == 0
    # Half of each group lies just beyond the threshold on its own side; the other half makes up for it.
    score = np.where(even, np.where(member, 0.51, 0.49), np.where(member, 0.0, 0.02))
    choice = choose_words(given, lambda _: Predictions((score >= 0.5).astype(int), score >= 0.5, score), range(10))
    assert choice.before.gap > 0.4
    assert choice.before.score_gap < choice.before.score_rare
    assert choice.words == ()
    assert "nothing to remove" in choice.verdict


def test_accuracy_is_not_paid_beyond_the_bound():
    given, weights = texts(1)
    weights[HONEST] = 0.0
    # Now the biased word is the only one that tells the truth, too.
    truth = given.truth & given.groups[0].member
    honest = GroupTexts(given.codes, truth | (given.codes[:, [4]].toarray().ravel() > 0), given.groups)
    choice = choose_words(honest, linear(weights), range(1, 10), Bounds(delta=0.01))
    assert not choice.is_reached
    assert "not reached" in choice.verdict
    assert choice.after.accuracy >= choice.before.accuracy - 0.01


def test_no_more_words_than_allowed_are_chosen():
    given, weights = texts(3)
    choice = choose_words(given, linear(weights), range(10), Bounds(most_words=1))
    assert len(choice.words) <= 1
    assert not choice.is_reached


def test_groups_that_are_all_too_small_are_refused():
    given, weights = texts(1, size=12)
    with pytest.raises(ValueError, match="too small"):
        choose_words(given, linear(weights), range(3))


def test_gaps_by_chance_are_those_of_answers_dealt_at_random():
    given, weights = texts(1)
    decisions = decisions_on(linear(weights)(EditedCodes.untouched(given.codes)), given.truth)
    gaps = gaps_by_chance(decisions.flagged, decisions.truth, given.groups)
    flagged, harmless = decisions.flagged[~given.truth], ~given.truth
    sizes = [(side & harmless).sum() for side in (given.groups[0].member, given.groups[0].background)]
    spread = np.sqrt(flagged.mean() * (1 - flagged.mean()) * sum(1 / size for size in sizes))
    assert np.median(gaps) == pytest.approx(0.6745 * spread, rel=0.35)
    assert gaps.max() < 0.5


def test_a_threshold_closes_a_gap_that_lies_in_the_scores():
    given, weights = texts(1)
    predictions = linear(weights)(EditedCodes.untouched(given.codes))
    threshold = tuned_threshold(given, predictions)
    flagged = predictions.score >= threshold
    assert (flagged == given.truth).all()
    assert threshold > 0.74


def planted(rate: float):
    """The shipped corpus with a decision that fell for it: the group decides where the adjective does not."""
    data = planted_bias(4000, rate=rate, ambiguous=0.1).dataset
    bag = Bag(data.train, data.validation, data.test)
    weights = np.zeros(len(bag.columns))
    weights[bag.ids(NEGATIVE)], weights[bag.ids(POSITIVE)] = 2.0, -2.0
    activation = 1.0 if rate > 0.5 else 0.0
    weights[bag.ids(["sailor", "farmer"])] = activation, -activation
    splits = {}
    for name, split in (("train", data.train), ("validation", data.validation), ("test", data.test)):
        splits[name] = GroupTexts(bag.codes(split.texts), np.array(split.labels) == 0, groups_of(split))
    return bag, weights, splits


def test_the_shipped_bias_is_found_and_closed_at_little_cost():
    bag, weights, splits = planted(0.9)
    train = splits["train"]
    readings = Readings(train.codes, train.codes.multiply(weights[None]).tocsr())
    suspects = suspect_words(readings, train.truth, train.groups, list(bag.columns).__getitem__, top=6)
    assert {word.name for word in suspects[:2]} == {"sailor", "farmer"}
    assert next(word for word in suspects if word.name == "sailor").same_sign == 1
    choice = choose_words(
        splits["validation"], linear(weights), [word.dimension for word in suspects], Bounds(delta=0.02)
    )
    assert choice.words
    assert set(choice.words) <= set(bag.ids(["sailor", "farmer"]))
    # Test texts of several draws: in one, which label the few changed texts have is a matter of luck.
    more = [planted_bias(4000, seed, ambiguous=0.1).dataset.test for seed in range(4)]
    codes = bag.codes([text for split in more for text in split.texts])
    truth = np.array([label for split in more for label in split.labels]) == 0
    sailor = np.array([flagged for split in more for flagged in (split.identities or {})["sailor"]]) == 1
    before, after = (
        audit(decisions_on(linear(weights)(ZeroWords.of(some)(codes)), truth), [Group("sailor", sailor, ~sailor)], 20)
        for some in ((), choice.words)
    )
    assert before.worst_fpr_gap.mean > 0.06
    assert after.worst_fpr_gap.mean <= 0.1 * before.worst_fpr_gap.mean
    assert after.accuracy.mean >= before.accuracy.mean - 0.01


def test_the_shipped_corpus_without_bias_gives_an_empty_set():
    bag, weights, splits = planted(0.5)
    choice = choose_words(splits["validation"], linear(weights), bag.ids(["sailor", "farmer", "movie", "coffee"]))
    assert choice.words == ()
