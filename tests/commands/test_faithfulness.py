import json

import pytest
import typer
import yaml
from rich.console import Console
from typer.testing import CliRunner

from lexical_sae import runs as pipelines
from lexical_sae.commands import studies as script
from lexical_sae.config.load import load_config
from lexical_sae.evaluation.explainers import benchmark as contest
from lexical_sae.models.persistence import save_pretrained
from tests import tiny
from tests.evaluation.corpora import TEXTS

app = typer.Typer()
app.command()(script.faithfulness)
FEW = ("--texts", 2, "--seeds", 1, "--no-captum", "--shapley-orders", 2, "--path-steps", 3)


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr(script, "console", Console(width=200))
    return lambda *arguments: CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


@pytest.fixture
def experiment(tmp_path):
    """An experiment file on invented rows; its run is not there yet."""
    texts = [f"{text} {i}" for i in range(6) for text in filter(None, TEXTS)]
    rows = [f'"{text}",{("negative", "neutral", "positive")[i % 3]}' for i, text in enumerate(texts)]
    data, config = tmp_path / "texts.csv", tmp_path / "experiment.yaml"
    data.write_text("\n".join(["text,label", *rows]) + "\n")
    place = tmp_path / "a run"
    config.write_text(yaml.safe_dump({"output_dir": str(place), "data": {"dataset_name": str(data)}}))
    return config, place


def leave_model(settings, place):
    save_pretrained(tiny.model(), place / "model")
    (place / "resolved_config.yaml").write_text(yaml.safe_dump(json.loads(settings.model_dump_json())))


def test_a_trained_model_is_measured_and_shown(run, experiment):
    config, place = experiment
    leave_model(load_config(config), place)
    shown = run("--config", config, *FEW).stdout
    assert "leave one out" in shown
    assert "Check: exact leave-one-out is first" in shown
    found = json.loads((place / "faithfulness.json").read_text())
    assert found["texts"] == 2
    assert found["model"] == str(place / "model")
    assert "direct" in found["removal"]
    assert "Words of the text masked</h2>" in (place / "faithfulness.html").read_text()


def test_explainers_meet_on_test_texts(run, experiment, monkeypatch):
    config, place = experiment
    leave_model(load_config(config), place)
    asked, plain = [], contest.compare_explainers

    def compare(model, texts, *others):
        asked.append(tuple(texts))
        return plain(model, texts, *others)

    monkeypatch.setattr(contest, "compare_explainers", compare)
    run("--config", config, *FEW)
    assert asked == [pipelines.load_data(load_config(config), 0).test.texts]


def test_slips_are_told_before_anything_is_trained(run, experiment, monkeypatch):
    config, place = experiment
    monkeypatch.setattr("lexical_sae.runs.experiment.train_run", lambda *_, **__: pytest.fail("trained"))
    with pytest.raises(ValueError, match="did you mean 'hatexplain'"):
        run("--config", config, "--rationales", "hatexplian", *FEW)
    leave_model(load_config(config), place)
    config.write_text(config.read_text() + "model: {max_length: 7}\n")
    with pytest.raises(ValueError, match="was made with other settings"):
        run("--config", config, *FEW)
