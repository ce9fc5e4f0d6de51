import json
from functools import partial

import pytest
import torch
import typer
from rich.console import Console
from typer.testing import CliRunner

from lexical_sae.commands import studies as script
from lexical_sae.config.load import load_config
from lexical_sae.data import TextDataset, TextSplit
from lexical_sae.models.persistence import save_pretrained
from lexical_sae.runs.folder import CONFIG
from lexical_sae.studies.post_hoc_sae import comparing as sae_comparison
from lexical_sae.studies.post_hoc_sae.comparing import compare_with_saes, words_of, write_comparison
from lexical_sae.studies.post_hoc_sae.fitting import SAESettings
from lexical_sae.studies.post_hoc_sae.states import document_states
from tests import tiny
from tests.tiny import BAD, GOOD

app = typer.Typer()
app.command()(script.sae)


@pytest.fixture(scope="module")
def model():
    return tiny.model()


@pytest.fixture(scope="module")
def results(model):
    texts = tuple(f"{text} {i}" for i in range(5) for text in (*GOOD, *BAD))
    split = TextSplit(texts, tuple(2 * (i % 8 < 4) for i in range(len(texts))))
    dataset = TextDataset("made", ("negative", "neutral", "positive"), split, split, split)
    return compare_with_saes(model, dataset, SAESettings(steps=5), train_texts=30, test_texts=20)


def test_words_and_three_dictionaries_answer_the_same_questions(results):
    assert [code["name"] for code in results["codes"]] == ["words", "ReLU SAE", "TopK SAE", "random dictionary"]
    assert [code["features"] for code in results["codes"][1:]] == [4 * 32] * 3
    assert list(results["fitting"]) == ["ReLU SAE", "TopK SAE", "random dictionary"]
    assert all(cost["seconds"] >= 0 for cost in results["fitting"].values())
    assert (results["train_texts"], results["test_texts"], results["width"]) == (30, 20, 32)
    for code in results["codes"]:
        assert code["accuracy"]["count"] == 20
        assert [flips["features"] for flips in code["flips"]] == [1, 3, 5]
    assert len(results["model"]["removed"]) == 4


def test_dictionaries_and_maps_are_fitted_on_train_texts_alone(model, monkeypatch):
    splits = [TextSplit(tuple(texts), (0, 2) * (len(texts) // 2)) for texts in (GOOD + BAD, GOOD[:2], BAD[::-1])]
    dataset = TextDataset("made", ("negative", "neutral", "positive"), *splits)
    states, counts = [], []
    plain = dict(sae_comparison.FITTERS)
    rebuild = sae_comparison.rebuild_from_words

    def fit(name, given, active, *others):
        states.append(given)
        counts.append(active)
        return plain[name](given, active, *others)

    def rebuilt(words, given, held):
        states.append(given)
        counts.append(float(words.counts.double().mean()))
        return rebuild(words, given, held)

    monkeypatch.setattr(sae_comparison, "FITTERS", {name: partial(fit, name) for name in plain})
    monkeypatch.setattr(sae_comparison, "rebuild_from_words", rebuilt)
    compare_with_saes(model, dataset, SAESettings(steps=2))
    own = document_states(sae_comparison._encoder(model), model.tokenizer, GOOD + BAD, model.max_length, "mean")
    assert len(states) == 4
    for given in states:
        torch.testing.assert_close(given, own)
    assert counts == pytest.approx([words_of(model, GOOD + BAD).counts.double().mean().item()] * 4)


def test_the_comparison_is_left_as_data_and_as_a_page(results, tmp_path):
    write_comparison(results, tmp_path)
    assert json.loads((tmp_path / "sae.json").read_text())["codes"][0]["name"] == "words"
    page = (tmp_path / "sae.html").read_text()
    for part in ("TopK SAE", "random dictionary", "variance rebuilt", "hidden state itself"):
        assert part in page


def test_words_of_many_texts_stand_in_their_order(model):
    texts = ["a", "a very good film and a plot", "bad"]
    alone = [words_of(model, [text]) for text in texts]
    together = words_of(model, texts)
    assert together.counts.tolist() == [int(one.counts[0]) for one in alone]
    assert together.ids.tolist() == [i for one in alone for i in one.ids.tolist()]


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr(script, "console", Console(width=200))
    return lambda *arguments: CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


@pytest.fixture
def experiment(tmp_path):
    data, place = tmp_path / "texts.csv", tmp_path / "run"
    rows = [f"{text} {i},{'negative' if text in BAD else 'positive'}" for i in range(8) for text in (*GOOD, *BAD)]
    rows += [f"{text} and {text} {i},neutral" for i in range(8) for text in GOOD]
    data.write_text("\n".join(["text,label", *rows]) + "\n")
    path = tmp_path / "experiment.yaml"
    path.write_text(f"output_dir: '{place}'\ndata: {{dataset_name: '{data}'}}\n")
    return path


def save_run(experiment, model):
    place = experiment.parent / "run"
    save_pretrained(model, place / "model")
    (place / CONFIG).write_text(load_config(experiment).model_dump_json())
    return place


def test_data_whose_labels_changed_since_training_are_refused(run, experiment, model):
    save_run(experiment, model)
    data = experiment.parent / "texts.csv"
    data.write_text(data.read_text().replace(",neutral", ",mixed"))
    with pytest.raises(ValueError, match=r"mixed, negative, positive.*the data changed since training"):
        run("--config", experiment, "--steps", 3)


def test_the_command_prints_and_writes(run, experiment, model):
    place = save_run(experiment, model)
    shown = run("--config", experiment, "--steps", 3, "--train-texts", 20, "--texts", 10).stdout
    assert "variance rebuilt" in shown
    assert (place / "sae.html").is_file()
