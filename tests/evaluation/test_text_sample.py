import pytest
import torch

from lexical_sae.evaluation.circuit_words import speaks_for_predicted
from lexical_sae.evaluation.text_sample import TextSampler
from tests.evaluation.corpora import random_head, read_batch
from tests.evaluation.planted_circuits import fed, some_vectors


def test_a_corpus_within_the_limit_is_kept_whole():
    head, vectors = random_head(), some_vectors()
    labels = [row % 3 for row in range(len(vectors))]
    sample = fed(TextSampler(100), head, vectors, labels).sample()
    assert sample.rows == tuple(range(len(vectors)))
    assert torch.equal(sample.code.dense(), vectors)
    assert sample.classes.tolist() == labels
    torch.testing.assert_close(sample.contributions, speaks_for_predicted(read_batch(head, vectors)))
    assert torch.equal(sample.word_vectors, head.word_vectors)


def test_the_sample_does_not_depend_on_the_batches():
    head, vectors = random_head(), some_vectors()
    first, second = (fed(TextSampler(10), head, vectors, batch_size=size).sample() for size in (3, 24))
    assert first.rows == second.rows
    assert len(first.rows) == 10
    assert torch.equal(first.code.dense(), vectors[list(first.rows)])
    assert fed(TextSampler(10, seed=1), head, vectors).sample().rows != first.rows


def test_few_texts_are_a_part_of_the_sample_and_the_same_as_of_a_small_one():
    head, vectors = random_head(), some_vectors()
    rows, texts, classes = fed(TextSampler(20), head, vectors).sample().few(5)
    assert tuple(rows) == fed(TextSampler(5), head, vectors).sample().rows
    assert texts == [f"text {row}" for row in rows]
    assert len(classes) == 5


def test_no_text_is_no_sample():
    with pytest.raises(ValueError, match="give at least one"):
        TextSampler().sample()
