import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.evaluation.circuit_words import (
    Rankings,
    logits_of_only,
    logits_without,
    random_scores,
    select_circuit,
    speaks_for_predicted,
)
from lexical_sae.mechanistic.exact import leave_one_out
from lexical_sae.models.circuit_state import circuit_mask
from lexical_sae.models.sparse_code import SparseCode
from tests.evaluation.corpora import centered_weights, random_head, read_batch
from tests.evaluation.planted_circuits import some_vectors
from tests.strategies import sparse_vectors, tensors


@given(sparse_vectors(4, 12), tensors(4, 12), st.sampled_from([0.01, 0.1, 0.34, 0.5, 1.0]))
def test_the_circuit_is_the_one_that_training_masks(vectors, scores, fraction):
    # Few distinct scores, so that ties are common.
    scores = scores.round()
    code = SparseCode.from_dense(vectors)
    chosen = select_circuit(code, scores[code.rows, code.ids], fraction)
    dense = torch.zeros(4, 12).index_put((code.rows, code.ids), chosen.float())
    assert torch.equal(dense.double(), circuit_mask(scores, vectors != 0, fraction, math.inf))


@pytest.mark.parametrize("kind", ["relu", "bcos"])
def test_what_is_left_is_what_the_head_says_of_it(kind):
    head, vectors = random_head(kind), some_vectors()
    state = read_batch(head, vectors).state
    chosen = torch.rand(len(state.code.ids)) < 0.4
    kept = torch.zeros_like(vectors).index_put((state.code.rows, state.code.ids), chosen.double()) * vectors
    torch.testing.assert_close(logits_of_only(head, state, chosen), head(kept).logits)
    torch.testing.assert_close(logits_without(head, state, chosen), head(vectors - kept).logits)


def test_orders_go_by_what_speaks_for_the_predicted_class():
    head, vectors = random_head(), some_vectors()
    batch = read_batch(head, vectors)
    weights = centered_weights(head, vectors)[torch.arange(len(vectors)), batch.predicted]
    code = batch.state.code
    said = (weights * vectors)[code.rows, code.ids]
    torch.testing.assert_close(speaks_for_predicted(batch), said)
    orders = Rankings(head).orders(batch)
    effects = leave_one_out(head, batch.state).effects.per_class
    for name, scores in (("direct", said), ("leave_one_out", effects)):
        if name == "leave_one_out":
            scores = (effects - effects.mean(1, keepdim=True)).gather(1, batch.predicted[code.rows, None]).squeeze(1)
        (order,) = orders[name]
        assert torch.equal(order.argsort(descending=True), scores.argsort(descending=True, stable=True))
        assert order.min() > 0
        assert len(order.unique()) == len(order)


def test_random_orders_differ_but_not_with_the_batch():
    head, vectors = random_head(), some_vectors()
    whole = read_batch(head, vectors)
    first, second, *_ = Rankings(head).orders(whole)["random"]
    assert not torch.equal(first, second)
    here = whole.state.code.text(5)
    alone = random_scores(read_batch(head, vectors[5:6], rows=[5]), [0, 1])
    assert torch.equal(random_scores(whole, [0, 1])[here], alone)


def test_a_batch_is_worked_out_once():
    head, vectors = random_head(), some_vectors()
    rankings, batch = Rankings(head), read_batch(head, vectors)
    assert rankings.removals(batch) is rankings.removals(batch)
    other = read_batch(head, vectors[:3])
    assert len(rankings.removals(other).region_changed) == len(other.state.code.ids)
