import pytest
import torch

from lexical_sae.evaluation.metrics.performance import PerformanceCollector
from tests.evaluation.corpora import relu_head
from tests.evaluation.planted_circuits import fed

# Word c says class c.
HEAD = relu_head(torch.eye(3).tolist(), torch.eye(3).tolist())


def scores_of(predicted, true, max_length=5):
    vectors = torch.eye(3, dtype=torch.float64)[predicted]
    return fed(PerformanceCollector(("x", "y", "z"), max_length), HEAD, vectors, true, batch_size=2).result()


def test_scores_are_those_worked_out_by_hand():
    # x: one of two found; y: found once and named twice; z never occurs.
    found = scores_of([0, 1, 1], [0, 0, 1])
    assert found.accuracy.mean == pytest.approx(2 / 3)
    assert found.majority == pytest.approx(2 / 3)
    x, y, z = found.classes
    assert (x.texts, x.precision, x.recall, x.f1) == (2, 1.0, 0.5, pytest.approx(2 / 3))
    assert (y.texts, y.precision, y.recall, y.f1) == (1, 0.5, 1.0, pytest.approx(2 / 3))
    assert (z.texts, z.precision, z.recall, z.f1) == (0, None, None, None)
    assert found.macro_f1 == pytest.approx(2 / 3)
    assert found.active_words.mean == 1


def test_texts_without_words_and_texts_that_fill_the_model_are_counted():
    vectors = torch.tensor([[0.0, 0, 0], [1, 0, 0]], dtype=torch.float64)
    found = fed(PerformanceCollector(("x", "y", "z"), max_length=1), HEAD, vectors, [0, 0]).result()
    assert (found.texts_without_words, found.texts_at_limit) == (1, 2)
    assert scores_of([0], [0]).texts_at_limit == 0
