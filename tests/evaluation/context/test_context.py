"""The whole: a bag of words shows no use of context, and models that hide the label in neutral words are caught."""

import json

import numpy as np
import pytest
import torch

from lexical_sae.evaluation.context.defaults import read_texts
from lexical_sae.evaluation.context.leakage import measure_leakage
from lexical_sae.evaluation.context.measuring import measure_context
from lexical_sae.evaluation.context.model import ContextModel
from lexical_sae.evaluation.context.references import fit_references
from lexical_sae.evaluation.names.bag_of_words import BagOfWords
from lexical_sae.evaluation.names.lexical import LexicalSAENames
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.report.context import context_figures, main_context_rows
from tests import tiny
from tests.evaluation.context.toys import BAD, GOOD, THINGS, Table, Toy, reviews

NAMES = ("negative", "positive")


@pytest.fixture(scope="module")
def references():
    return fit_references(*reviews())


def measured(model, references, names=NAMES, rows=None, **how):
    texts, labels = reviews(160, seed=1) if rows is None else rows
    return measure_context(model, texts, labels, *reviews(), names, references=references, limit=20, **how)


def hiding(activations: tuple[tuple[int, float], tuple[int, float]]) -> Toy:
    """A model that decides by what nouns activate: a dimension and its activation beside bad and good adjectives."""

    def activate(words):
        side = int(any(word in GOOD for word in words))
        return [(word, *activations[side]) for word in words if word in THINGS]

    return Toy(activate, {0: -1.0, 1: 1.0})


def two_classes() -> LexicalSAE:
    """An untrained model."""
    torch.manual_seed(1)
    return LexicalSAE(ModelConfig(gate="drelu"), tiny.backbone("bert"), {"classify": NAMES}).eval()


# The controls


def test_a_bag_of_words_shows_no_use_of_context(references):
    scores = measured(references.bag, references)
    assert scores.accuracy.context_free == scores.accuracy.full == scores.accuracy.bag_of_words
    assert scores.accuracy.difference.mean == 0
    assert scores.leakage.points.low <= 0 <= scores.leakage.points.high
    assert scores.leakage.points.mean == pytest.approx(0, abs=0.02)
    assert scores.leakage.bits.mean == pytest.approx(0, abs=0.02)
    assert (scores.shifts.per_text.mean, scores.shifts.texts_without.mean) == (0, 1)
    assert scores.shifts.context_share.mean == 0
    assert scores.independence.change.mean == 0
    assert scores.minimal_pairs.contribution_change.mean == scores.minimal_pairs.features_change.mean == 0


@pytest.mark.parametrize(
    "activations", [((0, 1.0), (1, 1.0)), ((0, 1.0), (0, 3.0)), ((0, 0.0), (1, 1.0))], ids=["which", "how", "whether"]
)
def test_a_label_hidden_in_what_neutral_words_activate_is_caught(activations, references):
    scores = measured(hiding(activations), references)
    assert scores.leakage.points.mean > 0.4
    assert scores.leakage.points.low > 0.3
    assert scores.leakage.probe.mean > 0.95
    assert scores.leakage.bits.low > 0.4
    # The controls stay near zero.
    assert abs(scores.leakage.shuffled_labels.mean) < 0.2
    assert scores.leakage.shuffled_activations.mean < 0.1


def test_what_is_hidden_in_the_other_features_is_not_in_the_accuracy_without_context(references):
    scores = measured(hiding(((0, 1.0), (1, 1.0))), references)
    assert scores.accuracy.full.mean == 1
    assert scores.accuracy.context_free.mean < 0.75
    assert scores.accuracy.difference.high < -0.2


def test_shifts_of_neutral_words_are_caught_and_those_of_telling_words_are_not(references):
    table = {**dict.fromkeys(GOOD, 1.0), **dict.fromkeys(BAD, -1.0), **dict.fromkeys(THINGS, 0.1)}

    def by_context(word, text):
        return (0.5 if set(text) & set(GOOD) else -0.5) if word in THINGS else 0.0

    leaking, honest = (measured(Table(table, shift), references) for shift in (by_context, lambda *_: 0.0))
    assert leaking.leakage.points.low > 0.2
    assert leaking.leakage.bits.low > 0.4
    assert leaking.shifts.per_text.mean == 1
    assert honest.leakage.points.mean == pytest.approx(0, abs=0.02)
    assert honest.leakage.bits.mean == pytest.approx(0, abs=0.02)
    assert honest.shifts.per_text.mean == 0
    assert honest.accuracy.context_free.mean == leaking.accuracy.context_free.mean == 1


def test_a_table_that_generalises_is_not_a_leak():
    # "story" and others are called neutral, but the model's own table knows better: no context is involved.
    table = {thing: (-1.0 if i % 2 else 1.0) for i, thing in enumerate(THINGS)}
    texts = [f"the {thing} was there" for thing in THINGS] * 4
    labels = [1 - i % 2 for i in range(len(THINGS))] * 4
    read = read_texts(Table(table), texts, labels, [], 2)
    scores = measure_leakage(Table(table), read, frozenset(THINGS))
    assert scores.own_head.mean == scores.own_head_at_defaults.mean == 1
    assert scores.points.mean == 0


def test_a_leak_that_only_the_own_head_can_read_counts():
    # Every neutral word occurs once: a probe learns nothing of it, the head reads its shift.
    words = [f"word{i}" for i in range(20)]
    table = Table(dict.fromkeys(words, 0.1), lambda _, text: 1.0 if "good" in text else -1.0)
    labels = [i % 2 for i in range(20)]
    texts = [f"{word} {('bad', 'good')[label]}" for word, label in zip(words, labels, strict=True)]
    scores = measure_leakage(table, read_texts(table, texts, labels, [], 2), frozenset(words))
    assert scores.own_head.mean == 1
    assert scores.own_head_at_defaults.mean == 0.5, "all positive by default"
    assert scores.probe.mean <= 0.6
    assert scores.points.mean == pytest.approx(1 - max(scores.probe_on_presence.mean, 0.5))


def test_the_share_of_contribution_on_neutral_words_is_over_the_predicted_class():
    table = {"good": 3.0, "story": 1.0}
    read = read_texts(Table(table), ["good story", "story", "the"], [1, 0, 1], [], 2)
    scores = measure_leakage(Table(table), read, frozenset({"story", "the"}))
    assert scores.contribution_share.mean == pytest.approx(2 / 5)
    assert scores.neutral_words == 2


def test_without_a_neutral_word_or_a_second_label_there_is_no_leakage_to_measure():
    table = Table({"good": 1.0})
    for neutral, labels in ((frozenset({"elsewhere"}), [0, 1]), (frozenset({"good"}), [1, 1])):
        assert measure_leakage(table, read_texts(table, ["good", "good"], labels, [], 2), neutral) is None


# Any task, any model


def test_three_classes_are_measured_and_what_needs_sentiment_says_so():
    texts, labels = reviews(90)
    labels = [i % 3 for i in range(90)]
    texts = [f"{text} {('red', 'green', 'blue')[label]}" for text, label in zip(texts, labels, strict=True)]
    bag = BagOfWords(texts, labels)
    scores = measure_context(bag, texts, labels, texts, labels, ("a", "b", "c"), limit=5)
    assert scores.accuracy.context_free.mean == scores.accuracy.full.mean == 1
    assert scores.leakage.points.mean == pytest.approx(0, abs=0.05)
    assert (scores.minimal_pairs, scores.antonyms, scores.negation) == (None, None, None)
    assert scores.skipped.endswith("need labels named negative and positive, not a, b, c")
    assert scores.edited_texts == 5


def test_a_lexical_model_is_measured_and_shown(references):
    steps = []
    scores = measured(two_classes(), references, on_step=steps.append)
    assert not scores.shifts.is_explicit
    assert scores.texts == 160
    assert {"reading texts"} == {step.task for step in steps}
    plain = json.loads(json.dumps(scores.as_dict()))
    heading, rows = context_figures("model", plain)
    assert "160 texts" in heading
    assert [row[0] for row in rows[:5]] == [row[0] for row in main_context_rows(plain)]
    assert {"context-free accuracy", "label leakage", "context shifts", "negation", "independence"} == {
        row[0] for row in rows[:5]
    }


def test_the_head_of_a_lexical_model_decides_from_features_as_from_the_text():
    named = LexicalSAENames(two_classes())
    assert isinstance(named, ContextModel)
    assert isinstance(BagOfWords(*reviews()), ContextModel)
    readings = named.contributions([*tiny.GOOD, *tiny.BAD])
    logits = named.decide([reading.words for reading in readings])
    # Twice the same feature counts once, whatever the order.
    again = named.decide([(*reversed(reading.words), *reading.words) for reading in readings])
    np.testing.assert_allclose(again, logits, atol=1e-6)
    for reading, own in zip(readings, logits, strict=True):
        centered = np.sum([word.contributions for word in reading.words], axis=0)
        assert centered.shape == own.shape
        assert own[reading.label] == pytest.approx(own.max(), abs=1e-5)
    assert named.default_contributions(readings) is None
    assert named.decide([]).shape == (0, 2)
    assert named.decide([()]).shape == (1, 2)


def test_an_edited_text_is_read_with_its_mask():
    named = LexicalSAENames(two_classes())
    (edited,) = named.read_edited(["a good [MASK] film"])
    assert edited.text == "a good [MASK] film"
    (typed,) = named.contributions(["a good [MASK] film"])
    assert typed.text != edited.text


def test_the_bag_of_words_decides_as_its_regression():
    texts, labels = reviews()
    bag = BagOfWords(texts, labels)
    logits = bag.decide([reading.words for reading in bag.contributions(texts[:9])])
    expected = bag.classifier.decision_function(bag.vectorizer.transform(texts[:9]))
    np.testing.assert_allclose(logits[:, 1] - logits[:, 0], expected, atol=1e-9)


def test_labels_must_match_the_texts(references):
    with pytest.raises(ValueError, match="2 texts with 1 labels"):
        measured(references.bag, references, rows=(["a", "b"], [1]))
