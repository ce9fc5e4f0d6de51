from dataclasses import replace

import pytest
import torch

from lexical_sae.evaluation.circuit_words import Rankings
from lexical_sae.evaluation.metrics.verification import VerificationCollector
from tests.evaluation.corpora import random_head, read_batch, relu_head
from tests.evaluation.planted_circuits import fed, some_vectors


@pytest.mark.parametrize("kind", ["relu", "bcos"])
def test_contributions_sum_to_the_logit_in_every_text(kind):
    head = random_head(kind)
    found = fed(VerificationCollector(Rankings(head)), head, some_vectors()).result()
    assert found.worst_relative_error < 1e-12
    assert found.worst_absolute_error < 1e-12
    assert found.texts_beyond_tolerance == 0


def test_a_decision_that_does_not_add_up_is_found():
    head, vectors = random_head(), some_vectors()
    collector = VerificationCollector(Rankings(head))
    batch = read_batch(head, vectors, rows=range(100, 124))
    logits = batch.state.logits.clone()
    logits[7, 1] += 0.5
    collector.update(replace(batch, state=replace(batch.state, logits=logits)))
    found = collector.result()
    assert found.texts_beyond_tolerance == 1
    assert found.worst_text == 107
    # Centred over three classes, a third of the gap goes to the mean.
    assert found.worst_absolute_error == pytest.approx(0.5 * 2 / 3)


def test_contributions_are_effects_where_no_unit_switches():
    head = relu_head([[1.0, 2], [-1, 1], [0.5, -1]], [[1.0, -1], [0, 1]], hidden_bias=[99, 99])
    vectors = some_vectors(size=3)
    found = fed(VerificationCollector(Rankings(head)), head, vectors).result()
    assert found.region_changed.mean == 0
    assert found.effect_error.mean < 1e-12
    assert found.same_sign.mean == 1
    with_words = int((vectors != 0).any(1).sum())
    assert found.region_changed.count == with_words < len(vectors)


def test_effects_of_removal_differ_where_units_switch():
    # One unit, on with both words and off without either: each alone brings it all down.
    head = relu_head([[1.0], [1.0]], [[1.0], [0.0]], hidden_bias=[-1.5])
    found = fed(VerificationCollector(Rankings(head)), head, torch.ones(3, 2, dtype=torch.float64)).result()
    assert found.region_changed.mean == 1
    # A contribution of 1/2 (half the logit difference) beside an effect of 1/4.
    assert found.effect_error.mean == pytest.approx(1.0)
