"""`lexical-sae calibrate` and `explain --abstain`, as a person types them."""

import json
import shutil

import pytest

from lexical_sae.models.persistence import from_pretrained


@pytest.fixture
def own(bare, model):
    """A run with a model of its own, saved without a calibration."""
    shutil.copytree(model, bare / "model")
    return bare / "model"


def test_an_older_model_is_calibrated_from_its_run_and_then_abstains(run, own):
    code, _, told = run("explain", str(own), "👍", "--json")
    assert code == 0
    assert "saved without a calibration" in told
    code, _, told = run("explain", str(own), "👍", "--abstain", "0.01")
    assert code
    assert "lexical-sae calibrate" in told
    code, printed, _ = run("calibrate", str(own), "--false-alarms", "0.1")
    assert code == 0
    assert "calibrated on" in printed
    assert from_pretrained(own).calibration.figures.false_alarms == 0.1
    code, printed, told = run("explain", str(own), "👍", "--abstain", "0.01", "--json")
    why = json.loads(printed)
    assert (code, why["label"], why["warnings"][0]["kind"]) == (0, "abstain", "no_words")
    assert "calibration" not in told


def test_a_model_without_its_run_cannot_be_calibrated(run, model):
    code, _, told = run("calibrate", str(model))
    assert code
    assert "inside the folder of its run" in told
