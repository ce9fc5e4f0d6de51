import json
import shutil

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from lexical_sae.commands import edit
from lexical_sae.data import load_text_dataset
from lexical_sae.models.persistence import save_pretrained
from tests import tiny

app = typer.Typer()
for command in (edit.edit, edit.certify, edit.verify):
    app.command()(command)


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr(edit, "console", Console(width=200))
    return lambda *arguments: CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_pretrained(tiny.model(), tmp_path_factory.mktemp("models") / "model")


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "reviews.csv"
    rows = [*((text, "positive") for text in tiny.GOOD), *((text, "negative") for text in tiny.BAD)]
    path.write_text("\n".join(["text,label", *(f"{text},{label}" for text, label in rows)]) + "\n")
    return path


@pytest.fixture
def edited(run, model, tmp_path):
    (tmp_path / "lexicon.yaml").write_text("forbid: [film, Good]\nkeep: [church]\n")
    result = run("edit", model, tmp_path / "lexicon.yaml", "--out", tmp_path / "edited")
    assert "film, films" in result.stdout
    return tmp_path / "edited"


def test_words_are_taken_out_certified_and_verified(run, model, edited, texts, tmp_path):
    path = tmp_path / "certificate.json"
    shown = run("certify", model, edited, "--file", texts, "--labelled", "--out", path).stdout
    assert "Level 2: effect on reviews.csv" in shown
    assert "accuracy" in shown
    assert str(tmp_path) not in path.read_text()
    result = run("verify", path, edited, "--file", texts, "--original", model)
    assert result.exit_code == 0
    assert result.stdout.count("holds") == 11
    assert "FAILS" not in result.stdout


def test_accuracy_on_texts_that_the_model_learned_from_is_told(run, model, edited, texts, tmp_path):
    own = tmp_path / "run" / "model"
    shutil.copytree(model, own)
    rows = [
        f"{text} {i},{label}"
        for i in range(9)
        for text, label in (line.split(",") for line in texts.read_text().splitlines()[1:])
    ]
    data = tmp_path / "all.csv"
    data.write_text("\n".join(["text,label", *rows]) + "\n")
    (tmp_path / "run" / "resolved_config.yaml").write_text(f"data: {{dataset_name: '{data}'}}\n")
    learned = len(rows) - len(load_text_dataset(data).test)
    given = ("certify", own, edited, "--file", data, "--out", tmp_path / "certificate.json")
    assert f"trained on {learned} of these {len(rows)} texts" in run(*given, "--labelled").stdout
    assert "trained on" not in run(*given).stdout
    unseen = ("certify", own, edited, "--file", texts, "--labelled", "--out", tmp_path / "certificate.json")
    assert "trained on" not in run(*unseen).stdout


def test_rows_that_were_left_out_are_left_out_again_by_the_command_that_is_named(run, model, edited, texts, tmp_path):
    texts.write_text(texts.read_text() + ",positive\n")
    path = tmp_path / "certificate.json"
    shown = run("certify", model, edited, "--file", texts, "--labelled", "--skip-bad-rows", "--out", path).stdout
    assert "--skip-bad-rows" in shown
    assert run("verify", path, edited, "--file", texts, "--skip-bad-rows").exit_code == 0


def test_a_claim_that_fails_ends_with_an_exit_code(run, model, edited, tmp_path):
    path = tmp_path / "certificate.json"
    assert "Level 2" not in run("certify", model, edited, "--out", path).stdout
    assert run("verify", path, edited).exit_code == 0
    config = edited / "config.json"
    config.write_text(config.read_text().replace("negative", "Negative"))
    result = run("verify", path, edited)
    assert result.exit_code == 1
    assert "FAILS" in result.stdout
    assert "config.json" in result.stdout


def test_a_claimed_effect_is_not_left_out_by_oversight(run, model, edited, texts, tmp_path):
    path = tmp_path / "certificate.json"
    run("certify", model, edited, "--file", texts, "--out", path)
    with pytest.raises(ValueError, match=r"claims an effect on reviews\.csv; give it with --file reviews\.csv"):
        run("verify", path, edited)
    assert "was not checked" in run("verify", path, edited, "--skip-data").stdout
    other = tmp_path / "certificate2.json"
    run("certify", model, edited, "--out", other)
    with pytest.raises(ValueError, match="claims no effect"):
        run("verify", other, edited, "--file", texts)


def test_a_certificate_is_not_put_among_a_models_files(run, model, edited):
    with pytest.raises(ValueError, match="inside the model's folder"):
        run("certify", model, edited, "--out", edited / "certificate.json")


def test_the_certificate_is_plain_json(run, model, edited, tmp_path):
    run("certify", model, edited, "--out", tmp_path / "c.json")
    body = json.loads((tmp_path / "c.json").read_text())
    assert [d["name"] for d in body["construction"]["removed"]] == ["good", "film", "films"]
