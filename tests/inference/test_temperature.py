"""One temperature, fitted on validation texts: probabilities change, labels and contributions do not."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lexical_sae.data import TextDataset, TextSplit
from lexical_sae.evaluation.metrics.calibration import CalibrationCollector
from lexical_sae.evaluation.results import EvaluationResults
from lexical_sae.evaluation.views.decisions import decision_rows
from lexical_sae.inference import explain, find_reasons, predict, predict_proba
from lexical_sae.models.calibration import CalibrationFigures
from lexical_sae.models.persistence import from_pretrained, save_pretrained
from lexical_sae.runs.calibrating import calibrate
from lexical_sae.training.temperature import fitted_temperature
from tests.evaluation.corpora import relu_head
from tests.evaluation.planted_circuits import fed
from tests.literal import TEXTS, literal_model
from tests.report.evaluations import evaluation


def drawn(scale, count=3000, seed=0):
    """Logits that are `scale` times too large, and labels drawn with the probabilities that are right."""
    generator = np.random.default_rng(seed)
    logits = torch.from_numpy(generator.normal(scale=2.0, size=(count, 3)))
    right = logits.softmax(-1).numpy()
    labels = [int(generator.choice(3, p=row / row.sum())) for row in right]
    return scale * logits, torch.tensor(labels)


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_the_temperature_is_how_much_too_large_the_logits_are(scale):
    assert fitted_temperature(*drawn(scale)) == pytest.approx(scale, rel=0.1)


def test_few_texts_that_are_all_right_do_not_ask_for_certainty():
    logits = torch.tensor([[2.0, 0.0], [0.0, 2.0]]).repeat(10, 1)
    labels = torch.tensor([0, 1]).repeat(10)
    assert 0.3 < fitted_temperature(logits, labels) < 1.0
    assert fitted_temperature(100 * logits, labels) == pytest.approx(1.0, abs=0.01)


@pytest.fixture(scope="module")
def plain():
    return literal_model()


@pytest.fixture
def warm():
    """A model with a temperature far from 1."""
    model = literal_model()
    split = TextSplit(tuple(TEXTS), (0, 1, 2, 0, 1))
    made = calibrate(model, TextDataset("few", model.labels["classify"], split, split, split))
    model.calibration = replace(made, figures=made.figures.model_copy(update={"temperature": 2.5}))
    return model


def test_labels_and_contributions_stay_and_probabilities_are_those_of_divided_logits(plain, warm):
    assert predict(warm, TEXTS) == predict(plain, TEXTS)
    for before, after in zip(explain(plain, TEXTS), explain(warm, TEXTS), strict=True):
        assert after.label == before.label
        assert [word.contribution for word in after.words] == [word.contribution for word in before.words]
        assert (after.bias, after.explained) == (before.bias, before.explained)
        logits = torch.tensor([probability for _, probability in before.probabilities]).log()
        expected = (logits / 2.5).softmax(-1).tolist()
        assert [probability for _, probability in after.probabilities] == pytest.approx(expected, abs=1e-5)
    probabilities = predict_proba(warm, TEXTS)
    expected = (predict_proba(plain, TEXTS).log() / 2.5).softmax(-1)
    torch.testing.assert_close(probabilities, expected, atol=1e-5, rtol=1e-5)
    assert find_reasons(warm, TEXTS[0]).probability == pytest.approx(float(probabilities[0].max()), abs=1e-5)


def test_it_is_saved_with_the_model(warm, tmp_path):
    loaded = from_pretrained(save_pretrained(warm, tmp_path / "model"))
    assert loaded.temperature == 2.5
    torch.testing.assert_close(predict_proba(loaded, TEXTS), predict_proba(warm, TEXTS))


def test_a_calibration_from_before_it_was_fitted_has_one_of_1(warm):
    saved = warm.calibration.figures.model_dump(mode="json")
    del saved["temperature"]
    assert CalibrationFigures.model_validate(saved).temperature == 1.0


def test_confidences_of_the_accuracy_steps_are_calibrated_ones():
    model = literal_model()
    with torch.no_grad():
        model.head().get_parameter("word_vectors").mul_(20)
    texts = TEXTS * 40
    labels = torch.randint(0, 3, (len(texts),), generator=torch.Generator().manual_seed(0)).tolist()
    split = TextSplit(tuple(texts), tuple(labels))
    made = calibrate(model, TextDataset("noise", model.labels["classify"], split, split, split))
    assert made.figures.temperature > 3
    assert max(step.confidence for step in made.figures.steps) < 0.8


def test_the_evaluation_tells_the_error_before_and_after():
    logits, labels = drawn(3.0, count=1500)
    # Three words whose activations are the logits.
    vectors = logits - logits.min(1, keepdim=True).values
    head = relu_head(np.eye(3).tolist(), np.eye(3).tolist())
    found = fed(CalibrationCollector(temperature=3.0), head, vectors, labels.tolist(), batch_size=64).result()
    plain = fed(CalibrationCollector(), head, vectors, labels.tolist(), batch_size=64).result()
    assert found.temperature == 3.0
    assert found.ece.mean < found.ece_by_chance_high
    assert found.ece_before is not None
    assert found.ece_before.mean == pytest.approx(plain.ece.mean)
    assert found.ece_before.mean > 3 * found.ece.mean
    assert plain.ece_before == plain.ece


def test_the_report_shows_it_where_there_is_one():
    def note(calibration):
        results = EvaluationResults.from_dict({**found, "calibration": calibration})
        return next(row[2] for row in decision_rows(results) if row[0] == "calibration error")

    found = evaluation()
    old = {key: value for key, value in found["calibration"].items() if key not in ("temperature", "ece_before")}
    assert "divided" not in note(old)
    new = {**old, "temperature": 0.8, "ece_before": {"mean": 0.07, "low": 0.05, "high": 0.09, "count": 500}}
    assert "7.0% before logits were divided by 0.80" in note(new)
