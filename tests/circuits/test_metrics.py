import itertools

import pytest
import torch

from splade.circuits.core import CircuitState, circuit_mask
from splade.circuits.metrics import CircuitMeter, extract_circuits, measure_completeness
from splade.mechanistic.attribution import attribute_centred
from splade.models.heads import ReluHead

SIZE, PLANTED = 60, {0: {3, 4}, 1: {10, 11}, 2: {20, 21}}


def planted_head() -> ReluHead:
    """A head in which two words speak for each class, all others hardly at all."""
    head = ReluHead.Config(hidden_units=3).build(SIZE, 3)
    with torch.no_grad():
        head.word_vectors.copy_(0.01 * torch.rand(SIZE, 3))
        head.class_weights.copy_(torch.eye(3))
        for label, words in PLANTED.items():
            head.word_vectors[list(words), label] = 1.0
    return head


def planted_texts(count: int = 30) -> tuple[torch.Tensor, torch.Tensor]:
    """About twenty active words a text, the two planted ones of its class among them."""
    labels = torch.arange(count) % 3
    strengths = torch.rand(count, SIZE) * (torch.rand(count, SIZE) < 0.3)
    strengths[:, [word for words in PLANTED.values() for word in words]] = 0
    for row, label in enumerate(labels.tolist()):
        strengths[row, list(PLANTED[label])] = 1.0
    return strengths, labels


def measured(head, strengths, labels, size=SIZE, num_labels=3, batch=7):
    meter = CircuitMeter(size, num_labels, fraction=0.1)
    for start in range(0, len(labels), batch):
        meter.update(head(strengths[start : start + batch]), labels[start : start + batch], head)
    return meter


def test_planted_circuits_are_recovered():
    head, (strengths, labels) = planted_head(), planted_texts()
    meter = measured(head, strengths, labels)
    found = extract_circuits(meter.centroids(), fraction=0.04)
    assert {label: set(row.nonzero().flatten().tolist()) for label, row in enumerate(found)} == PLANTED
    result = meter.result()
    assert result.accuracy == result.circuit_accuracy == result.agreement == 1
    assert result.separation_jaccard is not None
    assert result.separation_jaccard > 0.7
    assert result.separation_cosine is not None
    assert result.separation_cosine > 0.9
    assert result.active_words == pytest.approx((strengths != 0).sum(-1).float().mean().item())


def test_a_head_without_circuits_shows_none():
    torch.manual_seed(1)
    head, (strengths, labels) = ReluHead.Config(hidden_units=32).build(SIZE, 3), planted_texts()
    with torch.no_grad():
        head.class_bias.zero_()
    result = measured(head, strengths, labels).result()
    assert result.separation_jaccard is not None
    assert result.separation_jaccard < 0.3


def test_circuits_are_sized_by_the_words_active_in_the_centroid():
    centroids = torch.zeros(2, 1000)
    centroids[0, :20] = torch.arange(20.0) + 1
    assert extract_circuits(centroids, 0.1)[0].nonzero().flatten().tolist() == [18, 19]
    assert not extract_circuits(centroids, 0.1)[1].any()


def test_the_circuit_is_that_of_the_predicted_class_and_the_one_that_training_uses():
    head, (strengths, _) = planted_head(), planted_texts()
    state = head(strengths)
    found = measure_completeness(state, head, 0.1)
    attr = attribute_centred(state, state.logits.argmax(-1))
    assert torch.equal(found.circuit, circuit_mask(attr, strengths != 0, 0.1, float("inf")).bool())
    full, masked = state.logits.log_softmax(-1), head(strengths * found.circuit).logits.log_softmax(-1)
    torch.testing.assert_close(found.kl, (full.exp() * (full - masked)).sum(-1))


def test_a_circuit_of_everything_is_complete():
    head, (strengths, _) = planted_head(), planted_texts()
    found = measure_completeness(head(strengths), head, 1.0)
    assert found.is_kept.all()
    assert found.kl.max().item() < 1e-6


def test_the_size_of_the_batches_does_not_matter():
    head, (strengths, labels) = planted_head(), planted_texts()
    first, second = (measured(head, strengths, labels, batch=batch).result() for batch in (4, 30))
    assert first.completeness_kl == pytest.approx(second.completeness_kl)
    assert first.separation_cosine == pytest.approx(second.separation_cosine)
    assert (first.jaccard_within, first.jaccard_across) == (second.jaccard_within, second.jaccard_across)


def test_streamed_overlaps_are_those_of_all_pairs_while_there_is_room():
    head, (strengths, labels) = planted_head(), planted_texts()
    result = measured(head, strengths, labels).result()
    circuits = [
        set(row.nonzero().flatten().tolist()) for row in measure_completeness(head(strengths), head, 0.1).circuit
    ]
    overlaps = {True: [], False: []}
    for i, j in itertools.combinations(range(len(labels)), 2):
        shared = len(circuits[i] & circuits[j]) / len(circuits[i] | circuits[j])
        overlaps[bool(labels[i] == labels[j])].append(shared)
    assert result.jaccard_within == pytest.approx(sum(overlaps[True]) / len(overlaps[True]))
    assert result.jaccard_across == pytest.approx(sum(overlaps[False]) / len(overlaps[False]))


def test_streamed_overlaps_stay_close_to_all_pairs_in_a_long_stream():
    head, (strengths, labels) = planted_head(), planted_texts(600)
    few = measured(head, strengths, labels, batch=50).result()
    meter = CircuitMeter(SIZE, 3, fraction=0.1, references=1000)
    meter.update(head(strengths), labels, head)
    exact = meter.result()
    assert few.jaccard_within == pytest.approx(exact.jaccard_within, abs=0.03)
    assert few.jaccard_across == pytest.approx(exact.jaccard_across, abs=0.03)


def test_nothing_seen_is_not_perfect_separation():
    result = CircuitMeter(SIZE, 3, fraction=0.1).result()
    assert result.samples == 0
    assert result.separation_cosine is None
    assert result.separation_jaccard is None
    assert result.accuracy is None


def test_one_class_alone_is_not_separated_from_anything():
    head, (strengths, labels) = planted_head(), planted_texts()
    only = labels == 1
    result = measured(head, strengths[only], labels[only]).result()
    assert result.separation_cosine is None
    assert result.separation_jaccard is None
    assert result.jaccard_within is not None


def test_texts_without_words_are_measured_and_have_no_circuit():
    head = planted_head()
    meter = measured(head, torch.zeros(4, SIZE), torch.tensor([0, 1, 2, 0]))
    result = meter.result()
    assert result.agreement == 1
    assert result.active_words == 0
    assert result.jaccard_within is None
    meter.update(head(torch.zeros(0, SIZE)), torch.zeros(0, dtype=torch.long), head)
    assert isinstance(head(torch.zeros(1, SIZE)), CircuitState)
    assert meter.result() == result
