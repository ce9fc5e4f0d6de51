"""Each measure by hand."""

import math

import numpy as np
import pytest

from lexical_sae.evaluation.context import references
from lexical_sae.evaluation.context.accuracy import measure_accuracy
from lexical_sae.evaluation.context.columns import activation_columns, exchanged_activities, neutral_activities
from lexical_sae.evaluation.context.defaults import read_texts, texts_with_rare_words
from lexical_sae.evaluation.context.independence import measure_independence
from lexical_sae.evaluation.context.probe import cross_validated, label_bits, sparse_table
from lexical_sae.evaluation.context.references import fit_references, neutral_words, read_lexicon
from lexical_sae.evaluation.context.sentiment import measure_antonyms, measure_minimal_pairs, measure_negation
from lexical_sae.evaluation.context.shifts import measure_shifts
from lexical_sae.evaluation.context.templates import (
    ANTONYMS,
    NEGATION_FRAMES,
    NEGATIVE,
    NOUNS,
    OPPOSITE_ADJECTIVES,
    POSITIVE,
    minimal_pairs,
    negated,
    shared_material,
)
from lexical_sae.evaluation.context.words import SPECIAL, words_of
from lexical_sae.evaluation.names.model import NamedWord, Reading
from tests.evaluation.context.toys import BAD, GOOD, Table, Toy, reviews

# Words and defaults


def test_features_are_grouped_by_the_word_that_activates_them():
    text = "Good plot, good!"
    words = tuple(
        NamedWord(i, "x", span, 1.0, (-float(i), float(i)), float(i))
        for i, span in ((1, (0, 4)), (2, (11, 15)), (3, None), (4, (5, 9)))
    )
    found = words_of(Reading(text, 1, words, frozenset()), 2)
    assert {word: [f.dimension for f in own.features] for word, own in found.items()} == {
        SPECIAL: [3],
        "good": [1, 2],
        "plot": [4],
        ",": [],
        "!": [],
    }
    assert found["good"].contributions.tolist() == [-3, 3]


def by_number(words):
    """`story` activates dimension 0 as strongly as the number in the text says."""
    numbers = [float(word) for word in words if word.isdigit()]
    return [("story", 0, number) for number in numbers if number and "story" in words]


def test_a_default_is_what_most_other_occurrences_activate_at_their_mean():
    toy = Toy(by_number, {0: 1.0})
    read = read_texts(toy, ["story 2", "story 4", "story 0"], [0, 1, 1], [], 2)
    activations = [[(f.dimension, f.activation) for f in text["story"].features] for text in read.defaults]
    # Others: {4, none}, {2, none}, {2, 4}: active in half of them or more.
    assert activations == [[(0, 4.0)], [(0, 2.0)], [(0, 3.0)]]
    assert [text["story"].contributions[1] for text in read.defaults] == [2.0, 1.0, 3.0]
    # A word without another occurrence has no default.
    assert [sorted(text) for text in read.defaults] == [[SPECIAL, "story"]] * 3
    # A third text without the feature: it is active in a third of the others, and no default.
    read = read_texts(toy, ["story 2", "story 4", "story 0"], [0, 1, 1], ["story 0"], 2)
    assert [len(text["story"].features) for text in read.defaults] == [0, 0, 1]


def test_training_texts_are_read_for_words_that_are_rare_in_the_texts():
    corpus = ["the plot", "a rare word", "rare again", "nothing of it", "rare once more", "rare still"]
    texts = ["the rare plot"] + ["the plot"] * 5
    chosen = texts_with_rare_words(texts, corpus, most=10, seed=0)
    assert sorted(chosen) == sorted(set(chosen) - {"the plot", "nothing of it"})
    assert 3 <= len(chosen) <= 4
    assert len(texts_with_rare_words(texts, corpus, most=1, seed=0)) == 1


# Accuracy


def test_context_free_accuracy_by_hand():
    # "good" counts +2 and "not" -3 wherever they are; context takes "good" to -2 beside "not".
    table = Table({"good": 2.0, "bad": -2.0, "not": -1.0}, lambda word, text: -4.0 * (word == "good" and "not" in text))
    texts, labels = ["good", "not good", "bad"], [1, 0, 0]
    fitted = fit_references(["good", "bad", "not bad"] * 2, [1, 0, 1] * 2)
    scores = measure_accuracy(table, texts, read_texts(table, texts, labels, [], 2), fitted)
    assert scores.full.mean == 1
    assert scores.context_free.mean == pytest.approx(2 / 3), "'not good' is positive by default: 2 - 1 > 0"
    assert scores.difference.mean == pytest.approx(-1 / 3)
    bag = [reading.label for reading in fitted.bag.contributions(texts)]
    assert scores.bag_of_words.mean == pytest.approx(np.mean(np.array(bag) == labels))


def test_estimated_defaults_by_hand():
    # One word whose activation is the label's: by default each text has the mean of the others.
    toy = Toy(lambda words: [("story", int("good" in words), 1.0)], {0: -1.0, 1: 1.0})
    texts, labels = ["story good", "story bad", "story bad"], [1, 0, 0]
    fitted = fit_references(["good", "bad"] * 3, [1, 0] * 3)
    scores = measure_accuracy(toy, texts, read_texts(toy, texts, labels, [], 2), fitted)
    assert scores.full.mean == 1
    # First: others activate 0 -> negative, wrong. The others: 0 and 1 in half each -> 0, a tie, class 0.
    assert scores.context_free.mean == pytest.approx(2 / 3)


# Shifts


def test_shifts_by_hand():
    shifts = {"a": 0.5, "b": -1.0}
    table = Table({"a": 1.0, "b": 1.0, "c": 1.0}, lambda word, text: shifts.get(word, 0.0) * ("not" in text))
    read = read_texts(table, ["a b c", "not a", "not a b"], [1, 1, 1], [], 2)
    scores = measure_shifts(read)
    assert scores.is_explicit
    assert scores.per_text.mean == pytest.approx((0 + 1 + 2) / 3)
    assert scores.texts_without.mean == pytest.approx(1 / 3)
    # Context parts 0 + 0.5 + 1.5, default parts 3 + 1 + 2.
    assert scores.context_share.mean == pytest.approx(2 / 8)


def test_estimated_shifts_are_other_features_or_a_change_beyond_a_tenth():
    toy = Toy(by_number, {0: 1.0})
    read = read_texts(toy, ["story 100", "story 101", "story 102"], [1, 1, 1], [], 2)
    assert measure_shifts(read).per_text.mean == 0, "a hundredth is not material"
    read = read_texts(toy, ["story 100", "story 100", "story 130"], [1, 1, 1], [], 2)
    # From 115, 115 and 100: 15, 15 and 30 of a mean of 110.
    assert measure_shifts(read).per_text.mean == 1
    which = Toy(lambda words: [("story", int("good" in words), 1.0)], {0: 1.0, 1: 1.0})
    read = read_texts(which, ["story bad", "story bad", "story good"], [1, 1, 1], ["story bad"], 2)
    assert measure_shifts(read).per_text.mean == pytest.approx(1 / 3), "the same contribution of another feature"


# Independence


def test_independence_by_hand():
    # "great" counts 4, "film" 1, but 3 beside "great".
    table = Table(
        {"great": 4.0, "film": 1.0, "dog": -1.0}, lambda word, text: 2.0 * (word == "film" and "great" in text)
    )
    readings = table.contributions(["great film", "great dog", "the"])
    scores = measure_independence(table, readings, 2)
    # Masking "great" takes 2 from "film", nothing from "dog"; it carried 4 in both.
    assert scores.change.mean == pytest.approx(2 / 8)
    assert scores.change.count == 2


# Columns and the probe


def test_columns_say_which_features_are_active_and_how_strongly():
    toy = Toy(by_number, {0: 1.0})
    read = read_texts(toy, ["story 1", "story 3", "story 0"], [0, 1, 1], [], 2)
    rows = activation_columns(neutral_activities(read, frozenset({"story"})))
    assert rows == [{(0,): 1.0, (0, "activation"): -1.0}, {(0,): 1.0, (0, "activation"): 1.0}, {}]
    constant = read_texts(toy, ["story 2", "story 2", "2"], [0, 1, 1], [], 2)
    assert activation_columns(neutral_activities(constant, frozenset({"story"}))) == [{(0,): 1.0}, {(0,): 1.0}, {}]


def test_exchanged_activities_keep_presence_and_values():
    toy = Toy(by_number, {0: 1.0})
    read = read_texts(toy, [f"story {i}" for i in range(1, 30)] + ["plot"], [0, 1] * 15, [], 2)
    before = neutral_activities(read, frozenset({"story", "plot"}))
    after = exchanged_activities(before, np.random.default_rng(0))
    assert [set(text) for text in after] == [set(text) for text in before]
    old, new = ([text["story"][0].features[0].activation for text in texts[:29]] for texts in (before, after))
    assert old != new
    assert sorted(old) == sorted(new)


def test_the_probe_finds_what_is_there_and_nothing_else():
    labels = np.arange(200) % 2
    telling = cross_validated(sparse_table([{"column": 1.0} if label else {} for label in labels]), labels, seed=0)
    assert telling.is_right.all()
    assert telling.bits.mean() < 0.5
    nothing = cross_validated(sparse_table([{"column": 1.0} for _ in labels]), labels, seed=0)
    assert nothing.bits.mean() == pytest.approx(1.0, abs=0.02)
    empty = cross_validated(sparse_table([{} for _ in labels]), labels, seed=0)
    assert empty.bits.mean() == pytest.approx(1.0, abs=0.02)
    assert label_bits(labels).mean() == 1.0
    assert label_bits(np.array([0, 0, 0, 1])).mean() == pytest.approx(
        -(0.75 * math.log2(0.75) + 0.25 * math.log2(0.25))
    )


def test_a_class_with_one_text_does_not_stop_the_probe():
    labels = np.array([0, 1] * 10 + [2])
    found = cross_validated(sparse_table([{int(label): 1.0} for label in labels]), labels, seed=0)
    assert np.isfinite(found.bits).all()
    assert found.is_right[:-1].all()


# Neutral words


def test_neutral_words_say_nothing_of_the_label():
    texts, labels = reviews()
    texts = [f"{text} not often isn't hardly" for text in texts]
    neutral = neutral_words(texts, labels)
    assert {"the", "was", "often"} <= neutral
    assert not neutral & {*GOOD, *BAD}
    assert not neutral & {"not", "n't", "isn't", "hardly"}, "negations are not neutral"
    assert "elsewhere" not in neutral, "of a word that was never met nothing is known"
    assert "the" not in neutral_words(texts, labels, frozenset({"the"}))


def test_with_three_classes_a_word_of_one_of_them_is_not_neutral():
    texts = [f"the {colour}" for colour in ("red", "green", "blue")] * 10
    assert neutral_words(texts, [0, 1, 2] * 10) == {"the"}


def test_the_lexicon_is_read_by_its_first_field(tmp_path):
    (tmp_path / "lexicon.txt").write_text("Abysmal\t-2.1\t0.7\t[]\n\nworth it\t1\t1\t[]\n", encoding="utf-8")
    assert read_lexicon(tmp_path / "lexicon.txt") == {"abysmal", "worth it"}


def test_without_a_network_there_is_no_lexicon(monkeypatch):
    def fail(_):
        raise RuntimeError("no network")

    monkeypatch.setattr(references, "fetch_from_pypi", fail)
    assert references.sentiment_lexicon() is None


# Sentiment


def test_minimal_pairs_by_hand():
    adjectives = {word: side for pair in OPPOSITE_ADJECTIVES for word, side in zip(pair, (1.0, -1.0), strict=True)}

    def activate(words):
        (adjective,) = [word for word in words if word in adjectives]
        (noun,) = [word for word in words if word in NOUNS]
        side = adjectives[adjective]
        # Beside a positive adjective the noun activates two features, beside a negative one.
        found = [
            (adjective, 10, 2.0) if side > 0 else (adjective, 11, 2.0),
            (noun, 0, 0.5) if side > 0 else (noun, 1, 0.5),
        ]
        return [*found, *([(noun, 2, 1.0)] if side > 0 else [])]

    scores = measure_minimal_pairs(Toy(activate, {0: 1.0, 1: -1.0, 2: 0.0, 10: 1.0, 11: -1.0}), positive=1)
    assert scores.pairs == len(NOUNS) * len(OPPOSITE_ADJECTIVES) >= 40
    assert scores.features_change.mean == 1
    assert (scores.features_beside_positive.mean, scores.features_beside_negative.mean) == (2, 1)
    assert scores.contribution_change.mean == pytest.approx(1 / 4)


def test_antonyms_by_hand():
    first, *others = ANTONYMS
    table = {word: side for pair in others for word, side in zip(pair, (1.0, -2.0), strict=True)}
    table |= dict.fromkeys(first, 1.0)
    scores = measure_antonyms(Table(table), positive=1)
    wrong = sum(bool({*pair} & {*first}) for pair in ANTONYMS)
    assert wrong == 1
    assert scores.reversed.mean == pytest.approx(1 - 1 / len(ANTONYMS))


def test_negation_by_hand():
    table = {**dict.fromkeys(POSITIVE, 1.0), **dict.fromkeys(NEGATIVE, -1.0)}
    deaf = Table(table)
    reads_not = Table(table, lambda word, text: -2 * table[word] * ("not" in text))
    scores = measure_negation(deaf, positive=1)
    assert (scores.negated_positive.mean, scores.negated_negative.mean) == (0, 0)
    assert (scores.plain_positive.mean, scores.plain_negative.mean) == (1, 1)
    assert (scores.dense_positive, scores.dense_negative) == (None, None)
    with_not = sum("not" in frame.split() for frame in NEGATION_FRAMES) / len(NEGATION_FRAMES)
    scores = measure_negation(reads_not, positive=1, predict=lambda texts: [0] * len(texts))
    assert scores.negated_positive.mean == scores.negated_negative.mean == pytest.approx(with_not)
    assert (scores.dense_positive.mean, scores.dense_negative.mean) == (1, 0)


def test_the_material_is_large_enough_and_each_sentence_differs():
    sentences = negated((*POSITIVE, *NEGATIVE))
    assert len(NEGATION_FRAMES) >= 8
    assert len(set(sentences)) == len(sentences) >= 400
    assert len({s for pair in minimal_pairs() for s in pair.sentences}) == 2 * len(minimal_pairs())
    assert not set(POSITIVE) & set(NEGATIVE)
    assert all(len(pair) == 2 for pair in ANTONYMS)


def test_an_augmentation_that_uses_test_material_is_found():
    assert shared_material(["It was not {adjective}."], ["Good", "warm-hearted"]) == {"it was not {} .", "good"}
    assert shared_material(["nobody could say it was {x}"], ["gripping"]) == frozenset()
