"""Results are typed, versioned, and one more metric is one more entry of the registry."""

import json
from dataclasses import dataclass

import pytest

from lexical_sae.data.examples import TextSplit
from lexical_sae.evaluation.metrics.calibration import CALIBRATION
from lexical_sae.evaluation.metrics.metric import Subject, sampled, streamed
from lexical_sae.evaluation.metrics.performance import PERFORMANCE, Performance
from lexical_sae.evaluation.metrics.registry import METRICS, OTHER_METRICS
from lexical_sae.evaluation.results import SCHEMA_VERSION, EvaluationResults
from lexical_sae.evaluation.settings import EvaluationSettings
from lexical_sae.evaluation.suite import evaluate
from lexical_sae.evaluation.views.page import evaluation_part
from tests import tiny
from tests.evaluation.corpora import TEXTS
from tests.report.evaluations import evaluation

OF_CLASSES = [metric for metric in METRICS if "classes" in metric.outputs]
SPLIT = TextSplit(tuple(TEXTS), tuple(row % 3 for row in range(len(TEXTS))))
SETTINGS = EvaluationSettings(edited_texts=2, layer_texts=2, ungated_texts=2, explainer_texts=0)


@dataclass(frozen=True)
class Letters:
    """A toy metric: how long the texts are."""

    total: int


class LetterCollector:
    def __init__(self) -> None:
        self.total = 0

    def update(self, batch) -> None:
        self.total += sum(map(len, batch.texts))

    def result(self) -> Letters:
        return Letters(self.total)


def longest(of: Subject) -> Letters:
    return Letters(max(map(len, of.sample.texts)))


@pytest.fixture
def toys(monkeypatch):
    toys = [streamed("letters", Letters, lambda _: LetterCollector()), sampled("longest_text", Letters, longest)]
    for toy in toys:
        monkeypatch.setitem(OTHER_METRICS, toy.key, toy)
    return toys


def test_a_registered_metric_is_measured_timed_written_and_read_back(toys):
    found = evaluate(tiny.model(), SPLIT, SETTINGS)
    assert found.letters == Letters(sum(map(len, TEXTS)))
    assert found.get(toys[1]) == Letters(max(map(len, TEXTS)))
    assert {"letters", "longest text"} <= found.seconds.keys()
    read = EvaluationResults.from_dict(json.loads(json.dumps(found.as_dict())))
    assert [read.get(toy) for toy in toys] == [found.get(toy) for toy in toys]


def test_files_without_a_new_metric_are_still_read_and_shown(toys):
    read = EvaluationResults.from_dict(evaluation())
    assert read.get(toys[0]) is None
    assert all(topic.figures.rows for topic in evaluation_part(read).topics)


def test_every_key_is_used_once():
    keys = [metric.key for metric in METRICS]
    assert len(set(keys)) == len(keys)
    assert not set(keys) & {"texts", "labels", "seed", "seconds", "schema_version", "data", "split", "names"}


@pytest.mark.parametrize("metric", OF_CLASSES, ids=lambda metric: metric.key)
def test_an_older_file_without_a_metric_is_shown_without_it(metric):
    older = evaluation()
    del older[metric.key]
    read = EvaluationResults.from_dict(older)
    assert read.get(metric) is None
    assert len(evaluation_part(read).topics) == 3


def test_a_metric_in_a_form_that_cannot_be_read_is_left_out_and_named():
    odd = evaluation()
    odd["calibration"] = {"ece": "of another kind"}
    read = EvaluationResults.from_dict(odd)
    assert read.get(CALIBRATION) is None
    assert read.unreadable == ("calibration",)
    assert "holds calibration in a form that this version cannot read" in evaluation_part(read).about


def test_results_are_typed():
    read = EvaluationResults.from_dict(evaluation())
    scores = read.get(PERFORMANCE)
    assert isinstance(scores, Performance)
    assert read.performance is scores
    assert "performance" in dir(read)
    with pytest.raises(AttributeError, match="no 'perfomance'; it has performance"):
        _ = read.perfomance


def test_what_is_read_is_written_as_it_was():
    plain = evaluation()
    written = json.dumps(EvaluationResults.from_dict(plain).as_dict())
    again = json.loads(written)
    assert json.dumps(EvaluationResults.from_dict(again).as_dict()) == written
    assert again.keys() == plain.keys()


def test_a_file_of_a_newer_version_is_refused():
    newer = evaluation() | {"schema_version": SCHEMA_VERSION + 1}
    with pytest.raises(ValueError, match=r"update lexical-sae, or evaluate again"):
        EvaluationResults.from_dict(newer)


def test_a_file_without_a_version_is_of_the_first():
    older = evaluation()
    del older["schema_version"]
    assert EvaluationResults.from_dict(older).schema_version == 1
