import pytest
import torch

from splade.circuits.sparse_code import SparseCode
from splade.evaluation.masking_check import check_masking


def twins(count=300, seed=0):
    """Texts of four words out of eight pairs: a word never stands without its twin, and both are equally strong."""
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.zeros(count, 16)
    for row in range(count):
        pairs = torch.randperm(8, generator=generator)[:4]
        strengths = 1 + 0.1 * torch.rand(4, generator=generator)
        vectors[row, 2 * pairs] = vectors[row, 2 * pairs + 1] = strengths
    return vectors


def checked(vectors, trained=None, fractions=(0.25,)):
    code = SparseCode.from_dense(vectors)
    # The first of each pair counts most, so that the strongest words are words without their twins.
    scores = torch.where(code.ids % 2 == 0, 2.0, 1.0) + 0.01 * torch.rand(len(code.ids))
    return check_masking(code, torch.eye(16), scores, trained, fractions)


def test_words_torn_from_their_twins_are_out_of_the_usual():
    found = checked(twins())
    (masked,) = found.masked
    assert not found.trained_with_masking
    assert found.as_trained.mean == found.whole.mean == pytest.approx(0.05, abs=0.02)
    assert masked.strongest.low > 0.9
    assert found.merged.low > 0.5
    assert found.scattered.low > 0.5
    assert found.texts == 150


def test_masking_is_usual_for_a_head_that_was_trained_with_it():
    found = checked(twins(), trained=(0.2, 0.3))
    (masked,) = found.masked
    assert found.trained_with_masking
    assert found.as_trained.mean == pytest.approx(0.05, abs=0.02)
    assert masked.random.high < 0.3
    assert checked(twins()).masked[0].random.low > masked.random.high


def test_independent_words_can_go_without_notice():
    generator = torch.Generator().manual_seed(0)
    vectors = torch.rand(600, 16, generator=generator) * (torch.rand(600, 16, generator=generator) < 0.5)
    assert checked(vectors, fractions=(0.1,)).masked[0].random.mean < 0.15


def test_too_few_texts_tell_nothing():
    assert checked(twins(39)) is None
