import pytest
import torch

from lexical_sae.circuits.losses import separation_cosine
from lexical_sae.circuits.trackers import AttributionCentroidTracker, DocumentFrequencyTracker, FeatureFrequencyTracker

M = 2 / 21


def test_first_centroid_is_copied_and_later_ones_are_averaged_in():
    tracker = AttributionCentroidTracker(size=2, num_labels=2)
    tracker.update(torch.tensor([[1.0, -3.0], [3.0, 1.0]]), torch.tensor([0, 0]))
    assert tracker.centroids[0].tolist() == [2, 2]
    tracker.update(torch.tensor([[-8.0, 0.0]]), torch.tensor([0]))
    assert tracker.centroids[0].tolist() == pytest.approx([2 * (1 - M) + 8 * M, 2 * (1 - M)])


def test_classes_absent_from_a_batch_are_left_as_they_are():
    tracker = AttributionCentroidTracker(size=2, num_labels=3)
    tracker.update(torch.tensor([[4.0, 4.0]]), torch.tensor([1]))
    tracker.update(torch.tensor([[1.0, 0.0]]), torch.tensor([0]))
    assert tracker.seen.tolist() == [True, True, False]
    assert tracker.centroids.tolist() == [[1, 0], [4, 4], [0, 0]]


def test_the_cosine_between_centroids_sends_gradient_through_the_batch():
    tracker = AttributionCentroidTracker(size=4, num_labels=2)
    labels = torch.tensor([0, 1, 0, 1])
    for _ in range(2):  # the second time through filled buffers
        attr = torch.randn(4, 4, requires_grad=True)
        loss = separation_cosine(*tracker.blend(attr, labels))
        loss.backward()
        assert attr.grad is not None
        assert (attr.grad != 0).any(-1).all()
        tracker.update(attr, labels)
        assert not tracker.centroids.requires_grad


def test_blending_alone_changes_nothing_and_keeping_it_is_an_update():
    first, second = (AttributionCentroidTracker(size=3, num_labels=2) for _ in range(2))
    attr, labels = torch.randn(4, 3), torch.tensor([0, 1, 1, 0])
    blended = first.blend(attr, labels)
    assert not first.seen.any()
    first.keep(*blended)
    second.update(attr, labels)
    assert torch.equal(first.centroids, second.centroids)


def test_document_counts_fade_from_epoch_to_epoch():
    tracker = DocumentFrequencyTracker(size=2)
    assert tracker.frequencies().tolist() == [0, 0]
    tracker.update(torch.tensor([[True, False], [True, True]]))
    assert tracker.frequencies().tolist() == [1, 0.5]
    tracker.end_of_epoch()
    assert tracker.counts.tolist() == pytest.approx([1.8, 0.9])
    assert tracker.frequencies().tolist() == pytest.approx([1, 0.5])


def test_frequencies_are_right_from_the_first_step():
    tracker = FeatureFrequencyTracker(size=2)
    assert tracker.frequencies().tolist() == [0, 0]
    for _ in range(3):
        tracker.update(torch.tensor([[True, False], [True, True]]))
        assert tracker.frequencies().tolist() == pytest.approx([1, 0.5], rel=1e-4)


def test_frequencies_remember_a_hundred_batches():
    tracker = FeatureFrequencyTracker(size=1)
    tracker.update(torch.tensor([[True]]))
    for _ in range(99):
        tracker.update(torch.tensor([[False]]))
    # The weight of the first of a hundred batches at a decay of 0.99; at 0.9 it would be 3e-6.
    assert tracker.frequencies().item() == pytest.approx(0.01 * 0.99**99 / (1 - 0.99**100), rel=1e-3)


def test_only_candidates_are_under_active_and_none_in_the_first_fifty_steps():
    tracker = FeatureFrequencyTracker(size=4)
    tracker.update(torch.tensor([[True, True, False, False]]))
    is_open = torch.tensor([[True, False, False, False]])
    in_reach = torch.tensor([False, False, True, False])
    for step in range(2, 1000):
        assert not tracker.under_active(0.01).any() or step > 51
        tracker.update(is_open, in_reach if step == 500 else None)
    # Word 1 opened once, long ago; word 2 was only within reach; word 3 never appeared.
    assert tracker.under_active(0.01).tolist() == [False, True, True, False]


def test_a_word_proposed_before_training_is_a_candidate_for_good():
    tracker = FeatureFrequencyTracker(size=3, quiet_steps=2)
    tracker.propose(torch.tensor([True, True, False]))
    for step in range(1, 8):
        tracker.update(torch.tensor([[False, True, False]]))
        tracker.end_of_epoch()
        # Word 0 never opens, word 1 always does, word 2 was not proposed.
        assert tracker.under_active(0.5).tolist() == [step > 2, False, False]


def test_a_word_that_no_longer_opens_is_a_candidate_for_one_more_epoch():
    tracker = FeatureFrequencyTracker(size=1, quiet_steps=0)
    tracker.update(torch.tensor([[True]]))
    for expected in (True, False):
        tracker.end_of_epoch()
        for _ in range(1000):
            tracker.update(torch.tensor([[False]]))
        assert tracker.under_active(0.5).tolist() == [expected]


@pytest.mark.parametrize(
    "build",
    [
        lambda: AttributionCentroidTracker(3, 2),
        lambda: DocumentFrequencyTracker(3),
        lambda: FeatureFrequencyTracker(3),
    ],
)
def test_a_checkpoint_keeps_everything_a_tracker_remembers(build):
    first, second = build(), build()
    batch = torch.tensor([[1.0, 0.0, 2.0], [0.0, 0.0, 1.0]])
    arguments = (batch, torch.tensor([0, 1])) if isinstance(first, AttributionCentroidTracker) else (batch > 0,)
    first.update(*arguments)
    second.load_state_dict(first.state_dict())
    for tracker in (first, second):
        tracker.update(*arguments)
    states = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in states)
