import torch
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.models.circuit_state import largest_k_mask
from lexical_sae.models.sparse_code import SparseCode
from tests.strategies import sparse_vectors


@given(sparse_vectors(5, 9))
def test_dense_and_back_is_the_same(vectors):
    code = SparseCode.from_dense(vectors)
    assert torch.equal(code.dense(), vectors)
    assert len(code) == 5
    assert torch.equal(code.counts, (vectors != 0).sum(-1))


@given(sparse_vectors(4, 9))
def test_entries_of_a_text_are_its_active_words_in_order(vectors):
    code = SparseCode.from_dense(vectors)
    for row, vector in enumerate(vectors):
        here = code.text(row)
        assert code.ids[here].tolist() == vector.nonzero().flatten().tolist()
        assert torch.equal(code.values[here], vector[vector != 0])
        assert (code.rows[here] == row).all()


@given(sparse_vectors(4, 9), st.integers(1, 6))
def test_keeping_the_strongest_equals_the_dense_cut(vectors, k):
    vectors = (vectors * 3).round()  # many ties
    kept = SparseCode.from_dense(vectors).keep_strongest(k)
    assert torch.equal(kept.dense(), vectors * largest_k_mask(vectors, k))


def test_positions_default_to_unknown():
    code = SparseCode.from_dense(torch.tensor([[0.0, 2.0], [3.0, 0.0]]))
    assert code.positions.tolist() == [-1, -1]
    assert SparseCode.from_dense(code.dense(), torch.tensor([4, 7])).positions.tolist() == [4, 7]
