"""Literal words: their defaults are the model's own, and without shifts nothing is context."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch

from lexical_sae.data.batches import tokenize
from lexical_sae.evaluation.context.measuring import measure_context
from lexical_sae.evaluation.names.lexical import LexicalSAENames
from lexical_sae.evaluation.names.literal import LiteralNames, names_of
from lexical_sae.models.word_views import without_context
from lexical_sae.training.folds import FoldedDocuments
from lexical_sae.training.tasks import Documents
from lexical_sae.training.word_table import fit_word_table
from tests import tiny
from tests.literal import TEXTS, UNSEEN, batch_of, literal_model, opened

TEXTS_WITH_NEW = [*TEXTS[:4], *UNSEEN]
LABELS = ("negative", "neutral", "positive")


def rows(count, seed):
    """Texts of drawn words, each with one that tells its label."""
    chance = random.Random(seed)
    opinions = (("bad", "boring", "awful"), ("happy", "river"), ("good", "great", "wonderful"))
    others = ["film", "movie", "plot", "acting", "dog", "city", "church", "bank", "money", "the"]
    texts, labels = [], []
    for i in range(count):
        words = [*chance.sample(others, chance.randint(2, 5)), chance.choice(opinions[i % 3])]
        texts.append(" ".join(chance.sample(words, len(words))))
        labels.append(i % 3)
    return texts, labels


def fitted(shifting):
    model = literal_model(shifting=shifting)
    texts, labels = rows(120, seed=0)
    task = Documents(tokenize(model.tokenizer, texts, 16), torch.tensor(labels))
    folded = FoldedDocuments.of(task, seed=0)
    fit_word_table(model, folded, folded.folds, ())
    return model


def centered(logits):
    return (logits - logits.mean(-1, keepdim=True)).double().numpy()


def logits_of(model, texts):
    with torch.no_grad():
        return centered(model.read(model.encode_sparse(*batch_of(model, *texts))).logits)


def test_literal_words_are_read_with_the_defaults_that_the_model_has():
    assert type(names_of(literal_model())) is LiteralNames
    assert type(names_of(tiny.model())) is LexicalSAENames


def test_defaults_decide_as_the_model_without_context_does():
    model = opened(literal_model(), *TEXTS_WITH_NEW)
    named = names_of(model)
    readings = named.contributions(TEXTS_WITH_NEW)
    defaults = named.default_contributions(readings)
    at_default = [
        [replace(word, contributions=own) for word, own in zip(reading.words, values, strict=True)]
        for reading, values in zip(readings, defaults, strict=True)
    ]
    expected, as_read = logits_of(without_context(model), TEXTS_WITH_NEW), logits_of(model, TEXTS_WITH_NEW)
    np.testing.assert_allclose(named.decide(at_default), expected, atol=1e-5)
    np.testing.assert_allclose(named.decide([reading.words for reading in readings]), as_read, atol=1e-5)
    assert np.abs(expected - as_read).max() > 0.1


def test_a_text_without_words_is_decided_by_the_bias():
    named = names_of(literal_model())
    (reading,) = named.contributions(["!"])
    assert reading.words == ()
    np.testing.assert_allclose(named.decide([[]])[0], centered(named.model.head().class_bias))


@pytest.fixture(scope="module")
def scores():
    return {
        shifting: measure_context(fitted(shifting), *rows(90, seed=1), *rows(120, seed=0), LABELS, limit=20)
        for shifting in (False, True)
    }


def test_a_model_without_shifts_shows_no_use_of_context(scores):
    still = scores[False]
    assert still.shifts.is_explicit
    assert (still.shifts.per_text.mean, still.shifts.texts_without.mean) == (0, 1)
    assert still.shifts.context_share.mean == pytest.approx(0, abs=1e-6)
    assert still.independence.change.mean == pytest.approx(0, abs=1e-5)
    assert still.accuracy.context_free == still.accuracy.full
    assert still.accuracy.difference.mean == 0
    assert still.accuracy.full.mean > 0.9
    assert still.leakage.points.mean <= 0.02


def test_a_model_with_shifts_shows_them(scores):
    moved = scores[True]
    assert moved.shifts.per_text.mean > 0.3
    assert moved.shifts.texts_without.mean < 1
    assert moved.shifts.context_share.mean > 0.05
    assert moved.independence.change.mean > 1e-4
    # The table is the same, and so is what it says without context.
    assert moved.accuracy.context_free == scores[False].accuracy.context_free
    assert moved.accuracy.full != moved.accuracy.context_free
