import json

import pytest
import torch

from splade.config.load import build_config
from splade.data import load_text_dataset
from splade.models.dense import DenseClassifier
from splade.pipelines import run_baselines, run_experiment
from splade.training.baselines import dense_twin, tfidf_baseline
from tests import tiny
from tests.tiny import BAD, GOOD


@pytest.fixture
def encoder(tmp_path):
    return tiny.saved_encoder(tmp_path / "encoder")


@pytest.fixture
def csv(tmp_path):
    rows = [
        f"{text} {i},{label}" for i in range(20) for texts, label in ((GOOD, "pos"), (BAD, "neg")) for text in texts
    ]
    path = tmp_path / "reviews.csv"
    path.write_text("\n".join(["text,label", *rows]) + "\n")
    return path


def test_tfidf_learns_what_words_can_tell_and_keeps_every_answer(csv):
    dataset = load_text_dataset(str(csv))
    scores = tfidf_baseline(dataset)
    assert scores.accuracy == 1.0
    assert len(scores.is_correct) == len(dataset.test)
    assert scores.setting in scores.validation


def test_the_dense_twin_chooses_its_rate_on_validation(encoder, csv):
    dataset = load_text_dataset(str(csv))
    scores = dense_twin(dataset, str(encoder), epochs=4, batch_size=8, max_length=16, rates=(1e-9, 2e-3), device="cpu")
    assert scores.validation["lr=0.002"] > scores.validation["lr=1e-09"]
    assert scores.setting == "lr=0.002"
    assert scores.accuracy > 0.9


def test_the_dense_twin_is_the_encoder_with_a_classification_layer(encoder):
    model = DenseClassifier(str(encoder), 3).eval()
    ids, mask = tiny.batch()
    with torch.no_grad():
        logits = model(ids, mask)
        longer = torch.nn.functional.pad(ids, (0, 3)), torch.nn.functional.pad(mask, (0, 3))
        assert torch.allclose(model(*longer), logits, atol=1e-5)
    assert logits.shape == (4, 3)


def test_yardsticks_are_compared_with_the_model_text_by_text(encoder, csv, tmp_path):
    config = build_config(
        {
            "output_dir": str(tmp_path / "run"),
            "data": {"dataset_name": str(csv)},
            "model": {"name": str(encoder), "max_length": 16},
            "training": {"max_epochs": 1},
        }
    )
    assert "difference" not in run_baselines(config, "cpu", with_dense=False)
    (tmp_path / "run" / "baselines.json").unlink()
    results = run_experiment(config, device="cpu")
    found = run_baselines(config, "cpu", with_dense=False)
    assert found == json.loads((tmp_path / "run" / "baselines.json").read_text()) | {"baselines": found["baselines"]}
    assert found["model"]["accuracy"] == pytest.approx(results["test"]["accuracy"])
    gap = found["model"]["accuracy"] - found["baselines"]["TF-IDF"]["accuracy"]
    difference = found["difference"]["TF-IDF"]
    assert difference["mean"] == pytest.approx(gap)
    assert difference["low"] <= gap <= difference["high"]
