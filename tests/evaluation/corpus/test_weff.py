import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.evaluation.corpus.weff import WeightCollector
from tests.evaluation.corpora import centered_weights, random_head, read_batch, relu_head
from tests.strategies import sparse_vectors

ROWS, SIZE, CLASSES = 7, 9, 3


@given(st.sampled_from(["relu", "bcos"]), st.integers(0, 50), sparse_vectors(ROWS, SIZE), st.integers(1, ROWS - 1))
def test_weights_are_those_of_the_dense_states(kind, seed, vectors, cut):
    head = random_head(kind, seed=seed)
    collector = WeightCollector(CLASSES, SIZE)
    for part in (vectors[:cut], vectors[cut:]):
        collector.update(read_batch(head, part))
    weights = centered_weights(head, vectors)
    signs, sizes, spreads = [], 0.0, 0.0
    for index in range(CLASSES):
        for dimension in range(SIZE):
            own = weights[vectors[:, dimension] != 0, index, dimension]
            found = collector.of(index, dimension)
            if not len(own):
                assert found is None
                continue
            assert found is not None
            spread = float(own.std()) if len(own) > 1 else 0.0
            same_sign = max(int((own > 0).sum()), int((own < 0).sum())) / len(own)
            assert (found.count, found.same_sign) == (len(own), same_sign)
            assert found.mean == pytest.approx(float(own.mean()), abs=1e-10)
            assert found.spread == pytest.approx(spread, abs=1e-7)
            if len(own) >= 2:
                signs.append(same_sign)
                sizes, spreads = sizes + abs(float(own.mean())), spreads + spread
    summary = collector.summary(min_count=2)
    assert summary.words == len(signs) // CLASSES
    if signs:
        assert summary.same_sign == pytest.approx(sum(signs) / len(signs))
        assert summary.relative_spread == pytest.approx(spreads / sizes, abs=1e-6)


def test_a_linear_model_is_perfectly_steady():
    # Units so far open that no text closes one.
    head = relu_head([[1, -1], [2, 1]], [[1, 0], [0, 1]], hidden_bias=[100, 100])
    collector = WeightCollector(2, 2)
    collector.update(read_batch(head, torch.rand(9, 2).double() + 0.1))
    summary = collector.summary()
    assert (summary.words, summary.same_sign) == (2, 1.0)
    assert summary.relative_spread == pytest.approx(0, abs=1e-12)


def test_a_word_that_turns_with_its_company_is_not():
    # Word 0 feeds a unit for each class; word 1 closes the one, word 2 the other.
    head = relu_head([[1, 1], [-9, 0], [0, -9]], [[1, 0], [0, 1]])
    collector = WeightCollector(2, 3)
    collector.update(read_batch(head, torch.tensor([[1.0, 1, 0], [1, 0, 1], [1, 0, 1], [1, 0, 1]]).double()))
    turned = collector.of(0, 0)
    assert turned is not None
    assert (turned.mean, turned.same_sign, turned.count) == (0.25, 0.75, 4)
    assert turned.spread == pytest.approx(0.5)
    assert collector.summary(min_count=99).as_dict() == {"words": 0, "same_sign": None, "relative_spread": None}


def test_a_weight_of_zero_has_no_sign():
    # Word 1 closes the only unit, and with it all that word 0 says.
    head = relu_head([[1], [-9]], [[1], [0]])
    collector = WeightCollector(2, 2)
    collector.update(read_batch(head, torch.tensor([[1.0, 0], [1, 1], [1, 1]]).double()))
    closed = collector.of(0, 0)
    assert closed is not None
    assert (closed.same_sign, closed.mean) == (pytest.approx(1 / 3), pytest.approx(0.5 / 3))
