import pytest
import typer
import yaml
from rich.console import Console
from typer.testing import CliRunner

from splade.config.load import build_config
from splade.data import load_text_dataset
from splade.data.planted import planted_bias
from splade.scripts import plant, run_surgery

app = typer.Typer()
app.command("plant")(plant.plant)
app.command("surgery")(run_surgery.surgery)


@pytest.fixture
def run(monkeypatch):
    for script in (plant, run_surgery):
        monkeypatch.setattr(script, "console", Console(width=200))
    return lambda *arguments: CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


def test_a_planted_corpus_is_read_back_as_it_was_made(run, tmp_path):
    run("plant", "bias", "--out", tmp_path / "data", "--texts", "60")
    found = load_text_dataset("planted", path=tmp_path / "data")
    made = planted_bias(60).dataset
    assert sorted(found.train.texts) == sorted(made.train.texts)
    assert found.test == made.test
    assert found.validation.identities == made.validation.identities


def test_a_fair_corpus_has_the_groups_beside_both_labels(run, tmp_path):
    run("plant", "fair", "--out", tmp_path, "--texts", "400")
    train = load_text_dataset("planted", path=tmp_path).train
    assert train.identities is not None
    sailors = [label for label, said in zip(train.labels, train.identities["sailor"], strict=True) if said]
    assert 0.4 < sum(sailors) / len(sailors) < 0.6


def test_a_model_that_is_not_there_is_asked_for(run, tmp_path):
    config = tmp_path / "experiment.yaml"
    config.write_text(f"output_dir: {tmp_path / 'run'}\n")
    with pytest.raises(ValueError, match="train it first: lexical-sae train --config"):
        run("surgery", "--config", config, "--concept", "women", "--positive", "toxic")


def test_data_that_changed_since_training_is_refused(run, tmp_path):
    run("plant", "bias", "--out", tmp_path / "data", "--texts", "60")
    settings = {
        "output_dir": str(tmp_path / "run"),
        "data": {"dataset_name": "planted", "path": str(tmp_path / "data")},
    }
    (tmp_path / "run" / "model").mkdir(parents=True)
    (tmp_path / "experiment.yaml").write_text(yaml.safe_dump(settings))
    resolved = build_config(settings).model_dump(mode="json")
    (tmp_path / "run" / "resolved_config.yaml").write_text(yaml.safe_dump(resolved))
    (tmp_path / "run" / "decisions.json").write_text('{"test_digest": "of other texts", "is_correct": "1"}')
    with pytest.raises(ValueError, match="has changed since the run in .* was made"):
        run("surgery", "--config", tmp_path / "experiment.yaml", "--concept", "sailor", "--positive", "negative")


@pytest.mark.parametrize(("option", "value"), [("--swap", "muslim"), ("--group", "muslim="), ("--swap", ":x")])
def test_half_an_option_is_refused(run, tmp_path, option, value):
    config = tmp_path / "experiment.yaml"
    config.write_text("{}\n")
    with pytest.raises(ValueError, match="lacks a side"):
        run("surgery", "--config", config, "--concept", "x", "--positive", "y", option, value)


def test_a_label_may_have_a_comma():
    assert run_surgery._labels("Technical, IT", ["Billing", "Technical, IT"]) == ("Technical, IT",)
    assert run_surgery._labels("Billing, IT", ["Billing", "IT"]) == ("Billing", "IT")


def test_texts_from_elsewhere_need_their_positive_labels(tmp_path):
    path = tmp_path / "templates.csv"
    rows = [f"kill {n},BAD" for n in range(200)] + [f"love {n},NOT_BAD" for n in range(200)]
    path.write_text("Text,Label\n" + "\n".join(rows) + "\n")
    with pytest.raises(ValueError, match="--also-positive BAD"):
        run_surgery._other_texts(path, " , ", 10, 0)
    other = run_surgery._other_texts(path, "BAD", 10, 0)
    assert (other.name, len(other.split), other.positive) == ("templates.csv", 10, (0,))
    # By lot: the first rows of a sorted file have one label only.
    assert set(other.split.labels) == {0, 1}
