import json
import re

import pytest
import typer
from typer.testing import CliRunner

from lexical_sae.commands import explore as script
from lexical_sae.models.persistence import save_pretrained
from tests.literal import literal_model

app = typer.Typer()
app.command()(script.explore)


@pytest.fixture
def literal(finished):
    (finished / "model").unlink()
    save_pretrained(literal_model(), finished / "model")
    return finished


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


def data_of(page):
    (data,) = re.findall(r'id="payload">(.*?)</script>', page.read_text(), re.DOTALL)
    return json.loads(data)


def test_a_runs_test_texts_and_measures_become_a_page(literal, monkeypatch):
    monkeypatch.setattr(script.webbrowser, "open", lambda _: pytest.fail("nobody is at a terminal"))
    assert "explorer.html" in run(literal).stdout
    (model,) = data_of(literal / "explorer.html")["models"]
    assert model["codes"]["kind"] == "table"
    assert len(model["codes"]["label"]) == len(model["codes"]["texts"]["text"]) > 0
    assert model["accuracies"][0][:2] == ["accuracy", "87.5%"]
    assert [table["heading"] for table in model["measures"]]


def test_texts_of_a_file_are_taken_instead_as_many_as_wanted(literal, tmp_path):
    file = tmp_path / "more.csv"
    file.write_text("text,label\na good film,positive\na bad film,negative\nthe plot,neutral\n")
    run(literal, "--file", file, "--texts", 2, "--out", tmp_path / "page.html")
    codes = data_of(tmp_path / "page.html")["models"][0]["codes"]
    assert (len(codes["texts"]["text"]), codes["left_out"]) == (2, 1)


def test_another_run_is_shown_on_the_same_texts(literal):
    run(literal, "--against", literal)
    first, second = data_of(literal / "explorer.html")["models"]
    assert first["codes"]["texts"]["text"] == second["codes"]["texts"]["text"]


def test_a_tagger_is_refused(literal):
    (literal / "results.json").write_text('{"tags": ["O"]}')
    with pytest.raises(ValueError, match="holds a tagger.*use `report`"):
        run(literal)
