import io
import json
import pickle
from dataclasses import replace

import pytest
import torch
from rich.console import Console

from lexical_sae.data.examples import TextSplit
from lexical_sae.evaluation.circuit_words import Rankings
from lexical_sae.evaluation.metrics import attribution_methods
from lexical_sae.evaluation.metrics.calibration import CalibrationCollector
from lexical_sae.evaluation.metrics.completeness import CompletenessCollector
from lexical_sae.evaluation.metrics.eraser import EraserCollector
from lexical_sae.evaluation.metrics.performance import PerformanceCollector
from lexical_sae.evaluation.metrics.removability import RemovabilityCollector
from lexical_sae.evaluation.metrics.scaling_metrics import AblationSparsityCollector
from lexical_sae.evaluation.metrics.separation import SeparationCollector
from lexical_sae.evaluation.metrics.verification import VerificationCollector
from lexical_sae.evaluation.metrics.word_budget import FrontierCollector
from lexical_sae.evaluation.results import EvaluationResults
from lexical_sae.evaluation.settings import EvaluationSettings
from lexical_sae.evaluation.suite import evaluate
from lexical_sae.evaluation.text_sample import TextSampler
from lexical_sae.evaluation.views.terminal import evaluation_view
from lexical_sae.intervene import with_closed
from tests import tiny
from tests.evaluation.corpora import TEXTS, random_head
from tests.evaluation.planted_circuits import fed, some_vectors

SPLIT = TextSplit(tuple(TEXTS * 15), tuple(row % 3 for row in range(len(TEXTS) * 15)))
SETTINGS = EvaluationSettings(
    circuit_fraction=0.4, edited_texts=4, layer_texts=2, ungated_texts=4, explainer_texts=3, batch_size=16
)
METHODS = {"direct", "gradient", "integrated_gradients", "attention", "random"}
"""Some of those that are compared with captum or without."""


@pytest.fixture(scope="module")
def model():
    return tiny.model()


@pytest.fixture(scope="module")
def results(model):
    return evaluate(model, SPLIT, SETTINGS)


def test_everything_is_measured_and_goes_through_json(results):
    found = results.as_dict()
    assert found["texts"] == len(SPLIT)
    assert found["labels"] == ("negative", "neutral", "positive")
    assert [size["fraction"] for size in found["completeness"]["sizes"]] == [0.01, 0.05, 0.1, 0.2, 0.5]
    assert [rate["words"] for rate in found["removability"]["removed"]] == [1, 3, 5, 10]
    assert found["verification"]["texts_beyond_tolerance"] == 0
    assert found["masking"]["texts"] == 40
    assert len(found["layers"]["layers"]) == 2
    assert found["separation"]["fraction"] == 0.4
    assert found["seconds"].keys() >= {"reading", "eraser", "stability", "layers", "explainers"}
    assert json.loads(json.dumps(found))["texts"] == len(SPLIT)


def numbers(value):
    """Every number in nested plain data, in order."""
    if isinstance(value, dict):
        return [number for part in value.values() for number in numbers(part)]
    if isinstance(value, list | tuple):
        return [number for part in value for number in numbers(part)]
    return [value] if isinstance(value, float) else []


def test_batches_do_not_matter(model, results):
    other = evaluate(model, SPLIT, replace(SETTINGS, batch_size=48))
    # Not the separation: which circuits meet which depends on the order of reading.
    for part in ("performance", "calibration", "completeness", "eraser", "removability", "stability", "layers"):
        ours, theirs = (numbers(one.as_dict()[part]) for one in (results, other))
        assert len(ours) > 5
        assert ours == pytest.approx(theirs, abs=1e-4)


def test_one_text_is_measured_and_shown(model):
    found = evaluate(model, TextSplit(("a good film",), (0,)), SETTINGS)
    assert found.masking is None
    assert found.probes is None
    page = seen(found)
    assert "On 1 texts" in page
    rows = {" ".join(line.split()[:-1]): line.split()[-1] for line in page.splitlines() if line.strip()}
    layers = found.as_dict()["layers"]
    told = {"embeddings alone": "without_layers", "joint remainder": "remainder", "together": "full"}
    assert {name: rows[name] for name in told} == {name: f"{layers[key]['mean']:.2f}" for name, key in told.items()}
    assert "nan" not in page


def seen(found):
    page = io.StringIO()
    Console(file=page, width=200).print(evaluation_view(found))
    return page.getvalue()


def test_attribution_methods_are_compared_on_a_few_texts_and_shown(results):
    found = results.explainers
    assert found.texts + found.texts_without_words == 3
    assert found.texts >= 2
    assert set(found.removal) >= METHODS
    assert found.checks.leave_one_out_is_first
    shown = [line.split() for line in seen(results).splitlines()]
    (direct,) = (line for line in shown if line[:1] == ["direct"])
    erasure = found.removal["direct"].erasure
    means = (found.removal["direct"].spearman, erasure.comprehensiveness, erasure.sufficiency)
    assert direct[1:5] == [f"{one.mean:.3f}" for one in (*means, found.deletion["direct"].erasure.comprehensiveness)]
    (occlusion,) = (line for line in shown if line[:2] == ["input", "occlusion"])
    assert occlusion[2:5] == ["–", "–", "–"], "it scores words of the text alone"


def test_the_comparison_of_methods_can_be_switched_off_and_leaves_long_texts_out(model, monkeypatch):
    asked = []
    monkeypatch.setattr(attribution_methods, "compare_explainers", lambda _, texts, **__: asked.append(texts))
    evaluate(model, SPLIT.take(range(8)), replace(SETTINGS, explainer_texts=0))
    assert asked == []
    # Both special tokens count.
    evaluate(model, SPLIT.take(range(8)), replace(SETTINGS, explainer_tokens=5))
    assert asked == [["a good film", "", "happy dogs"]]


def test_an_evaluation_from_before_methods_were_compared_is_shown(results):
    older = results.as_dict()
    del older["explainers"]
    found = EvaluationResults.from_dict(older)
    assert "Attribution methods" not in seen(found)
    assert "What are its words like?" in seen(found)


def test_texts_without_words_are_measured(model):
    silent = tiny.model()
    silent.gate.close(torch.ones(len(model.dimensions), dtype=torch.bool))
    found = evaluate(silent, SPLIT.take(range(4)), SETTINGS)
    assert found.performance.texts_without_words == 4
    assert found.separation.cosine is None
    assert found.explainers is None
    assert "Attribution methods not compared" in seen(found)
    assert found.completeness.sizes[0].circuit.agreement.mean == 1
    json.dumps(found.as_dict())


def test_memory_does_not_grow_with_the_corpus():
    head, labels = random_head(), ("x", "y", "z")

    def sizes(count):
        rankings = Rankings(head)
        collectors = [
            PerformanceCollector(labels, 9),
            CalibrationCollector(),
            FrontierCollector(head),
            VerificationCollector(rankings),
            CompletenessCollector(head, labels, [0.1]),
            EraserCollector(rankings, [0.1]),
            RemovabilityCollector(rankings, [1]),
            SeparationCollector(3, 9),
            AblationSparsityCollector(rankings),
            TextSampler(20),
        ]
        vectors = some_vectors(40).repeat(count, 1)
        given = [row % 3 for row in range(len(vectors))]
        return [len(pickle.dumps(fed(one, head, vectors, given, batch_size=40))) for one in collectors]

    for before, after in zip(sizes(1), sizes(4), strict=True):
        assert after < 1.05 * before + 200


def test_a_probe_on_a_word_piece_does_not_name_it(model):
    words = model.dimensions.clean_mask
    found = evaluate(with_closed(model, words), TextSplit(SPLIT.texts[:40], SPLIT.labels[:40]), SETTINGS)
    assert {one.word for one in found.probes.classes} == {"1 piece or symbol"}
