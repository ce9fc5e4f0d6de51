import numpy as np
import pytest
import torch

from lexical_sae.evaluation.metrics.calibration import CalibrationCollector
from tests.evaluation.corpora import relu_head
from tests.evaluation.planted_circuits import fed

# One word; its strength is the log-odds of the first class against the second.
HEAD = relu_head([[1.0]], [[1.0], [0.0]])


def decisions(count=2000, seed=0):
    """Confidences from a half to one, and whether a model that is right that often is right."""
    generator = np.random.default_rng(seed)
    confidence = generator.uniform(0.51, 0.99, count)
    return confidence, generator.random(count) < confidence


def result_of(confidence, is_right):
    vectors = torch.from_numpy(np.log(confidence / (1 - confidence)))[:, None]
    return fed(CalibrationCollector(), HEAD, vectors, [int(not r) for r in is_right], batch_size=64).result()


def test_a_calibrated_model_is_within_chance():
    found = result_of(*decisions())
    assert found.ece.mean < found.ece_by_chance_high
    assert found.ece_by_chance == pytest.approx(found.ece.mean, abs=0.02)
    assert found.overconfidence.low < 0 < found.overconfidence.high


def test_an_overconfident_model_is_found():
    confidence, _ = decisions()
    is_right = np.random.default_rng(1).random(len(confidence)) < confidence - 0.2
    found = result_of(confidence, is_right)
    assert found.ece.low > 2 * found.ece_by_chance_high
    assert found.overconfidence.mean == pytest.approx(0.2, abs=0.03)


def test_figures_are_those_of_their_definitions():
    confidence, is_right = decisions(300)
    found = result_of(confidence, is_right)
    place = np.ceil(confidence * 15).astype(int) - 1
    bins = [np.flatnonzero(place == i) for i in range(15)]
    gaps = [len(rows) * abs(confidence[rows].mean() - is_right[rows].mean()) for rows in bins if len(rows)]
    assert found.ece.mean == pytest.approx(sum(gaps) / 300)
    true = np.where(is_right, confidence, 1 - confidence)
    assert found.log_loss.mean == pytest.approx(-np.log(true).mean())
    assert found.brier.mean == pytest.approx((2 * (1 - true) ** 2).mean())
    assert sum(one.texts for one in found.curve) == 300
    for one in found.curve:
        rows = np.flatnonzero((confidence > one.low) & (confidence <= one.high))
        assert one.accuracy.mean == pytest.approx(is_right[rows].mean())
        assert one.confidence == pytest.approx(confidence[rows].mean())


def test_certainty_falls_into_the_last_bin():
    found = result_of(np.array([1 - 1e-16, 0.5]), [True, True])
    assert [(one.high, one.texts) for one in found.curve] == [(pytest.approx(8 / 15), 1), (1.0, 1)]
