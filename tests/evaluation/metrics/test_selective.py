"""Accuracy by coverage: against a slow reference, and on confidences that tell everything and nothing."""

from dataclasses import replace

import pytest
import torch

from lexical_sae.evaluation.collect import collect
from lexical_sae.evaluation.metrics.selective import COVERAGES, SelectiveCollector
from lexical_sae.evaluation.views.decisions import selective_rows
from tests.evaluation.corpora import TEXTS
from tests.literal import literal_model


def result_of(confidence, is_right):
    collector = SelectiveCollector(None)
    collector.confidence, collector.is_right = list(confidence), list(is_right)
    return collector.result()


def test_the_area_is_the_mean_error_over_all_coverages():
    confidence = torch.rand(50, generator=torch.Generator().manual_seed(0)).tolist()
    is_right = [sure > 0.3 for sure in confidence]
    ordered = [right for _, right in sorted(zip(confidence, is_right, strict=True), reverse=True)]
    expected = sum(1 - sum(ordered[:k]) / k for k in range(1, 51)) / 50
    found = result_of(confidence, is_right)
    assert found.aurc == pytest.approx(expected)
    assert found.points[0].accuracy == pytest.approx(sum(is_right) / 50)
    assert found.points[-1].accuracy == 1.0


def test_confidence_that_ranks_errors_last_beats_one_that_ranks_them_first():
    is_right = [True] * 80 + [False] * 20
    good = result_of([1 - i / 100 for i in range(100)], is_right)
    bad = result_of([i / 100 for i in range(100)], is_right)
    assert good.error == pytest.approx(0.2)
    assert good.aurc < good.error < bad.aurc
    assert [point.coverage for point in good.points] == list(COVERAGES)
    assert [point.accuracy for point in good.points] == sorted(point.accuracy for point in good.points)


def test_warnings_of_a_corpus_are_counted():
    model, collector = literal_model(), SelectiveCollector(None)
    texts = ["a good film", "👍", "", "!", *filter(None, TEXTS)]
    collect(model, texts, [collector], [0] * len(texts))
    found = collector.result()
    assert found.warnings == {"no_words": pytest.approx(3 / len(texts))}
    assert found.warned == pytest.approx(3 / len(texts))
    assert "no calibration" in selective_rows(replace(found, points=()))[-1][2]
