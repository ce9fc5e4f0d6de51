import itertools
import math

import pytest
import torch

from lexical_sae.evaluation.metrics.separation import SeparationCollector
from lexical_sae.mechanistic.attribution import attribute_centered
from lexical_sae.models.circuit_state import circuit_mask
from tests.evaluation.corpora import random_head, relu_head
from tests.evaluation.planted_circuits import SIZE, fed, planted_head, planted_texts, some_vectors


def separation_of(head, vectors, batch_size=7, **settings):
    return fed(SeparationCollector(3, vectors.shape[1], **settings), head, vectors, batch_size=batch_size).result()


def test_planted_classes_are_separated_and_classes_by_lot_are_not():
    found = separation_of(planted_head(), planted_texts()[0])
    assert found.cosine.low > 0.9
    assert found.cosine_by_chance < 0.2
    assert found.jaccard.low > 0.7
    assert found.jaccard_across.mean < 0.01


def test_classes_that_use_the_same_words_are_not_separated():
    # One class for texts of many words, one for texts of few; every word says the same.
    vectors = planted_texts(90)[0]
    middle = float(vectors.sum(1).median())
    head = relu_head([[1.0, -1.0]] * SIZE, [[1, 0], [0, 1], [-9, -9]], hidden_bias=[-middle, middle])
    found = separation_of(head, vectors)
    assert found.cosine.mean < 0.2
    assert abs(found.jaccard.mean) < 0.1


def test_figures_are_those_of_all_pairs():
    head, vectors = random_head(), some_vectors(16)
    found = separation_of(head, vectors, fraction=0.3)
    state = head(vectors)
    predicted = state.logits.argmax(-1)
    attr = attribute_centered(state, predicted)
    centroids = torch.stack([attr.abs()[predicted == c].mean(0) for c in predicted.unique()])
    pairs = list(itertools.combinations(centroids, 2))
    cosine = sum(float(torch.cosine_similarity(a, b, dim=0)) for a, b in pairs) / len(pairs)
    assert found.cosine.mean == pytest.approx(1 - cosine, abs=1e-6)
    circuits = [set(row.nonzero().flatten().tolist()) for row in circuit_mask(attr, vectors != 0, 0.3, math.inf)]
    per_text = {True: [], False: []}
    for i, circuit in enumerate(circuits):
        overlaps = {True: [], False: []}
        for j in range(i):
            if circuit and circuits[j]:
                shared = len(circuit & circuits[j]) / len(circuit | circuits[j])
                overlaps[bool(predicted[i] == predicted[j])].append(shared)
        for same, values in overlaps.items():
            if values:
                per_text[same].append(sum(values) / len(values))
    assert found.jaccard_within.mean == pytest.approx(sum(per_text[True]) / len(per_text[True]))
    assert found.jaccard_across.mean == pytest.approx(sum(per_text[False]) / len(per_text[False]))


def test_one_class_is_separated_from_nothing():
    head, (vectors, labels) = planted_head(), planted_texts()
    found = separation_of(head, vectors[torch.tensor(labels) == 1])
    assert found.cosine is None
    assert found.jaccard is None
    assert found.jaccard_within is not None


def test_texts_without_words_separate_nothing():
    found = separation_of(planted_head(), torch.zeros(4, SIZE, dtype=torch.float64))
    assert found.cosine is None
    assert found.cosine_by_chance is None
    assert found.jaccard_within is None


def test_few_texts_have_no_interval():
    found = separation_of(planted_head(), planted_texts(6)[0])
    assert found.cosine.mean > 0.9
    assert found.cosine.low is None
