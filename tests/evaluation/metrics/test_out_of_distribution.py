import pytest
import torch

from lexical_sae.evaluation.metrics.out_of_distribution import check_masking
from lexical_sae.models.sparse_code import SparseCode


def twins(count=300, seed=0):
    """Texts of four words out of eight pairs: a word never stands without its twin, and both are equally strong."""
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.zeros(count, 16)
    for row in range(count):
        pairs = torch.randperm(8, generator=generator)[:4]
        activations = 1 + 0.1 * torch.rand(4, generator=generator)
        vectors[row, 2 * pairs] = vectors[row, 2 * pairs + 1] = activations
    return vectors


def checked(vectors, trained=None, fractions=(0.25,), seed=0):
    code = SparseCode.from_dense(vectors)
    # The first of each pair counts most, so that the strongest words are words without their twins.
    scores = torch.where(code.ids % 2 == 0, 2.0, 1.0) + 0.01 * torch.rand(len(code.ids))
    return check_masking(code, torch.eye(16), scores, trained, fractions, seed)


def test_words_torn_from_their_twins_are_out_of_the_usual():
    found = checked(twins())
    (masked,) = found.masked
    assert not found.trained_with_masking
    assert found.as_trained.mean == found.whole.mean == pytest.approx(0.05, abs=0.06)
    assert masked.strongest.low > 0.9
    assert found.merged.low > 0.5
    assert found.scattered.low > 0.5
    assert found.texts == 100


def test_masking_is_usual_for_a_head_that_was_trained_with_it():
    found = checked(twins(), trained=(0.2, 0.3))
    (masked,) = found.masked
    assert found.trained_with_masking
    assert found.as_trained.mean == pytest.approx(0.05, abs=0.06)
    assert masked.random.high < 0.3
    assert checked(twins()).masked[0].random.low > masked.random.high


def test_independent_words_can_go_without_notice():
    generator = torch.Generator().manual_seed(0)
    vectors = torch.rand(600, 16, generator=generator) * (torch.rand(600, 16, generator=generator) < 0.5)
    assert checked(vectors, fractions=(0.1,)).masked[0].random.mean < 0.15


def test_too_few_texts_tell_nothing():
    assert checked(twins(119)) is None
    assert checked(twins(120)).texts == 40


@pytest.mark.parametrize("trained", [None, (0.2, 0.3)])
def test_texts_as_in_training_are_tried_like_all_others_and_come_out_at_5_percent(trained):
    found = [checked(twins(150, seed), trained, seed=seed).as_trained.mean for seed in range(20)]
    assert len(set(found)) > 3, "measured, not fixed"
    # The noise of 50 texts and of bounds from 50, twenty times over: 1 % at one sigma.
    assert sum(found) / len(found) == pytest.approx(0.05, abs=0.02)


def figures(found):
    masked = [part.mean for one in found.masked for part in (one.strongest, one.random)]
    return [one.mean for one in (found.as_trained, found.whole, found.merged, found.scattered)] + masked


def test_the_order_of_the_corpus_does_not_matter():
    """Two classes with words of their own, eight in each text: sorted by class, and shuffled."""
    generator = torch.Generator().manual_seed(0)
    is_said = torch.rand(1000, 16, generator=generator) < 0.5
    activations = 1 + torch.rand(1000, 16, generator=generator)
    vectors = activations * is_said
    vectors[:500, 8:] *= 0.1
    vectors[500:, :8] *= 0.1
    order = torch.randperm(1000, generator=generator)
    by_label, shuffled = (checked(some, fractions=(0.1, 0.5)) for some in (vectors, vectors[order]))
    assert figures(by_label) == pytest.approx(figures(shuffled), abs=0.08)
    assert by_label.whole.mean < 0.12


def test_texts_are_merged_with_texts_by_lot_not_with_their_neighbours():
    """Texts of opposite classes cancel out: two at once are too much only if of one class, as half of all pairs are."""
    generator = torch.Generator().manual_seed(0)
    signs = torch.where(torch.arange(600) < 300, 1.0, -1.0)[:, None]
    vectors = signs * (4 + torch.randn(600, 16, generator=generator))
    assert 0.35 < checked(vectors).merged.mean < 0.65
