import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.evaluation.corpus.lexicon import LexiconCollector, PieceSum, strongest_first
from lexical_sae.evaluation.intervals import mean_and_interval
from tests.evaluation.corpora import centered_weights, random_head, read_batch, relu_head
from tests.strategies import sparse_vectors

ROWS, SIZE, CLASSES = 7, 9, 3


def lexicon_of(batches, labels=("x", "y", "z"), size=SIZE, **settings):
    collector = LexiconCollector(len(labels), size)
    for batch in batches:
        collector.update(batch)
    return collector.lexicon(labels, "word{}".format, **settings)


@given(st.sampled_from(["relu", "bcos"]), st.integers(0, 50), sparse_vectors(ROWS, SIZE), st.integers(0, ROWS))
def test_the_lexicon_is_the_mean_of_dense_contributions(kind, seed, vectors, cut):
    head = random_head(kind, seed=seed)
    classes = np.random.default_rng(seed).integers(CLASSES, size=ROWS).tolist()
    parts = [slice(0, cut), slice(cut, ROWS)]
    batches = [read_batch(head, vectors[part], classes[part]) for part in parts if vectors[part].numel()]
    found = lexicon_of(batches, top=SIZE, min_count=2)
    assert found.texts == ROWS
    contributions = centered_weights(head, vectors) * vectors[:, None]
    for index, own in enumerate(found.classes):
        rows = [row for row in range(ROWS) if classes[row] == index]
        assert own.texts == len(rows)
        words = {word.dimension: word for word in (*own.contributes_to, *own.contributes_against)}
        for dimension in range(SIZE):
            values = contributions[rows, index, dimension].tolist()
            if not values or np.mean(values) == 0:
                assert dimension not in words
                continue
            word, expected = words[dimension], mean_and_interval(values)
            active = vectors[rows, dimension] != 0
            assert word.contribution == pytest.approx(expected.mean, abs=1e-10)
            assert (word.low, word.high) == (pytest.approx(expected.low), pytest.approx(expected.high))
            assert word.count == int(active.sum())
            assert word.is_rare == (word.count < 2)
            assert word.frequency == pytest.approx(word.count / len(rows))
            assert word.activation == pytest.approx(float(vectors[rows, dimension][active].mean()))


def test_planted_words_stand_where_they_were_planted():
    # One hidden unit per class; word 0 and 1 feed the first, 2 the second, 3 neither.
    head = relu_head([[2, 0], [1, 0], [0, 1], [0, 0]], [[1, -1], [-1, 1]])
    vectors = torch.tensor([[1.0, 0, 0, 1], [1, 3, 0, 0], [0, 1, 4, 1], [0, 0, 1, 0]]).double()
    first, second = lexicon_of([read_batch(head, vectors)], ("first", "second"), size=4, min_count=2).classes
    assert [(w.name, w.contribution, w.count, w.is_rare) for w in first.contributes_to] == [
        ("word0", 2.0, 2, False),
        ("word1", 1.5, 1, True),
    ]
    assert first.contributes_against == ()
    assert [(w.name, w.contribution) for w in second.contributes_to] == [("word2", 2.5)]
    assert [(w.name, w.contribution) for w in second.contributes_against] == [("word1", -0.5)]
    assert (first.texts, second.texts) == (2, 2)
    assert second.contributes_to[0].activation == 2.5


def test_only_the_strongest_are_shown_and_json_keeps_everything():
    head = random_head()
    vectors = torch.rand(6, SIZE, dtype=torch.float64)
    found = lexicon_of([read_batch(head, vectors)], top=2)
    every = lexicon_of([read_batch(head, vectors)], top=99)
    for few, many in zip(found.classes, every.classes, strict=True):
        assert few.contributes_to == many.contributes_to[:2]
        assert few.contributes_against == many.contributes_against[:2]
        values = [word.contribution for word in many.contributes_to]
        assert values == sorted(values, reverse=True)
    plain = json.loads(json.dumps(found.as_dict()))
    assert plain["classes"][0]["label"] == "x"
    assert plain["texts"] == 6


def test_the_mean_of_one_text_has_no_interval():
    head = relu_head([[1.0]], [[1], [-1]])
    (word,) = lexicon_of([read_batch(head, torch.ones(1, 1).double())], ("a", "b"), size=1).classes[0].contributes_to
    assert (word.low, word.high) == (None, None)


def test_of_equal_words_the_first_comes_first():
    assert strongest_first(torch.tensor([1.0, 2, 0, 2, -1]), 9) == [1, 3, 0]
    assert strongest_first(torch.tensor([1.0, 2, 0, 2, -1]), 1) == [1]


def test_what_is_not_listed_is_summed():
    vectors = torch.tensor([[1.0, 2, 0, 1], [0, 2, 0, 1]], dtype=torch.float64)
    head = relu_head(torch.eye(4).tolist(), [[3, -1, 5, 2], [0, 0, 0, 0]])
    listed = torch.tensor([False, True, False, True])
    whole, short = (
        lexicon_of([read_batch(head, vectors, [0, 0])], ("x", "y"), 4, top=9, listed=mask).classes[0]
        for mask in (None, listed)
    )
    assert [word.name for word in whole.contributes_to] == ["word3", "word0"]
    assert whole.pieces is None
    assert [word.name for word in short.contributes_to] == ["word3"]
    assert [word.name for word in short.contributes_against] == ["word1"]
    # Word 0 says 1.5 for x above the mean of both classes, in one of two texts; word 2 is never active.
    assert short.pieces == PieceSum(1, 0.75)


def test_forms_of_a_word_are_one_word_in_the_lexicon():
    head = relu_head([[2, 0], [1, 0], [0, 1], [0, 0]], [[1, -1], [-1, 1]])
    vectors = torch.tensor([[1.0, 1, 0, 1], [1, 3, 0, 0], [0, 1, 4, 1]]).double()
    batch = read_batch(head, vectors, [0, 0, 0])
    alone, merged = LexiconCollector(2, 4), LexiconCollector(2, 4, torch.tensor([0, 0, 2, 3]))
    for collector in (alone, merged):
        collector.update(batch)
    of_form = {word.dimension: word for word in alone.lexicon("ab", "{}".format).classes[0].contributes_to}
    (word,) = merged.lexicon("ab", "{}".format).classes[0].contributes_to
    assert word.contribution == pytest.approx(of_form[0].contribution + of_form[1].contribution)
    # In two texts both forms stand, and in one only the second.
    assert (of_form[0].count, of_form[1].count, word.count) == (2, 3, 3)
    per_text = (centered_weights(head, vectors) * vectors[:, None])[:, 0, :2].sum(-1)
    expected = mean_and_interval(per_text.tolist())
    assert (word.low, word.high) == (pytest.approx(expected.low), pytest.approx(expected.high))
