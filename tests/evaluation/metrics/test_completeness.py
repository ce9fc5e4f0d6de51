import math

import pytest
import torch

from lexical_sae.evaluation.metrics.completeness import CompletenessCollector
from lexical_sae.mechanistic.attribution import attribute_centered
from lexical_sae.models.circuit_state import circuit_mask
from tests.evaluation.corpora import random_head
from tests.evaluation.planted_circuits import fed, planted_head, planted_texts, some_vectors

LABELS = ("x", "y", "z")


def test_planted_circuits_are_enough_and_random_ones_are_not():
    head, (vectors, labels) = planted_head(), planted_texts()
    found = fed(CompletenessCollector(head, LABELS, [0.1]), head, vectors, labels).result()
    (size,) = found.sizes
    assert found.full_accuracy.mean == 1
    assert size.circuit.agreement.mean == size.circuit.relative_accuracy.mean == 1
    assert size.circuit.recovered.low > 0.85
    assert size.random.agreement.high < 0.75
    assert size.advantage.low > 0.3
    # Without words the bias names the first class, a third of the texts.
    assert found.empty.agreement.mean == pytest.approx(1 / 3)
    assert found.empty.recovered.mean == 0
    assert {name: one.mean for name, one in size.per_class.items()} == {"x": 1, "y": 1, "z": 1}


def test_figures_are_those_of_deciding_again_by_brute_force():
    head, vectors = random_head(), some_vectors()
    labels = [row % 3 for row in range(len(vectors))]
    found = fed(CompletenessCollector(head, LABELS, [0.3]), head, vectors, labels, batch_size=7).result().sizes[0]
    full = head(vectors)
    predicted = full.logits.argmax(-1)
    mask = circuit_mask(attribute_centered(full, predicted), vectors != 0, 0.3, math.inf)
    left = head(vectors * mask).logits
    logs = full.logits.log_softmax(-1)
    kl = (logs.exp() * (logs - left.log_softmax(-1))).sum(-1)
    own = torch.arange(len(vectors)), predicted

    def centered(logits):
        return (logits - logits.mean(-1, keepdim=True))[own]

    empty = centered(head(torch.zeros_like(vectors)).logits)
    recovered = (centered(left) - empty).sum() / (centered(full.logits) - empty).sum()
    assert found.words.mean == pytest.approx(mask.sum(-1).mean().item())
    assert found.circuit.kl.mean == pytest.approx(kl.mean().item())
    assert found.circuit.agreement.mean == pytest.approx((left.argmax(-1) == predicted).double().mean().item())
    right = (left.argmax(-1) == torch.tensor(labels)).double().mean()
    assert found.circuit.accuracy.mean == pytest.approx(right.item())
    assert found.circuit.recovered.mean == pytest.approx(recovered.item())
    per_class = {LABELS[c]: (left.argmax(-1) == c)[predicted == c].double().mean().item() for c in predicted.unique()}
    assert {name: one.mean for name, one in found.per_class.items()} == pytest.approx(per_class)


@pytest.mark.parametrize("kind", ["relu", "bcos"])
def test_a_circuit_of_all_words_is_the_model(kind):
    head, vectors = random_head(kind), some_vectors()
    found = fed(CompletenessCollector(head, LABELS, [1.0]), head, vectors).result().sizes[0]
    for left in (found.circuit, found.random):
        assert left.agreement.mean == 1
        assert left.kl.mean < 1e-12
        assert left.recovered.mean == pytest.approx(1)


def test_random_circuits_are_as_large_as_the_circuit():
    head, vectors = random_head(), some_vectors()
    # Equal strengths and one word for all: which words are left does not matter, only how many.
    head.word_vectors.data[:] = head.word_vectors[0]
    found = fed(CompletenessCollector(head, LABELS, [0.1, 0.5]), head, (vectors != 0).double()).result()
    for size in found.sizes:
        assert size.random.kl.mean == pytest.approx(size.circuit.kl.mean)
