import json

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from splade.models.persistence import save_pretrained
from splade.report.evaluation_figures import evaluation_figures
from splade.scripts import evaluate as script
from tests import tiny
from tests.evaluation.corpora import TEXTS

app = typer.Typer()
app.command()(script.evaluate)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_pretrained(tiny.model(), tmp_path_factory.mktemp("run") / "model")


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr(script, "console", Console(width=200))
    return lambda *arguments: CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


def write(path, rows, header="review,verdict"):
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


@pytest.fixture
def reviews(tmp_path):
    rows = [f'"{text}",{("negative", "positive")[i % 2]}' for i, text in enumerate(filter(None, TEXTS))]
    return write(tmp_path / "my reviews.csv", rows)


def test_a_file_is_measured_in_one_line(run, folder, reviews):
    shown = run(folder, reviews).stdout
    for heading in ("How well does it decide? On 7 texts", "Are its explanations true?", "What are its words like?"):
        assert heading in shown
    assert "guessed: text column 'review'" in shown
    assert "in every text" in shown
    found = json.loads((folder.parent / "evaluation.json").read_text())
    assert found["texts"] == 7
    assert found["data"] == str(reviews)
    assert found["performance"]["accuracy"]["count"] == 7
    headings = [heading for heading, rows in evaluation_figures(found) if rows]
    assert headings[0] == f"How well does it decide? On 7 texts of {reviews}"
    assert len(headings) == 5, "a page can show all that was written"
    # Three texts of the seven are negative; they count as the model numbers its classes.
    assert [own["texts"] for own in found["performance"]["classes"]] == [4, 0, 3]


def test_the_file_and_the_rows_can_be_chosen(run, folder, reviews, tmp_path):
    out = tmp_path / "deep" / "mine.json"
    with reviews.open("a") as file:
        file.write('"",positive\n')
    run(folder, reviews, "--skip-bad-rows", "--out", out, "--texts", 3, "--seed", 1)
    assert json.loads(out.read_text())["texts"] == 3


@pytest.mark.parametrize(
    ("rows", "arguments", "message"),
    [
        (["a film,odd"], (), "label 'odd' is not a label of this model"),
        (["a film,positiv"], (), "did you mean 'positive'"),
        (['"",positive'], (), r"texts.csv:2 \(empty text\)"),
        (["a film,positive"], ("--text-column", "x"), "has no column 'x'"),
    ],
    ids=["label", "typo", "empty", "column"],
)
def test_slips_are_told_in_a_sentence(run, folder, tmp_path, rows, arguments, message):
    with pytest.raises(ValueError, match=message):
        run(folder, write(tmp_path / "texts.csv", rows), *arguments)


def test_no_file_is_told(run, folder):
    with pytest.raises(FileNotFoundError, match="no file"):
        run(folder, "nowhere.csv")


def test_columns_beside_a_named_set_are_refused(run, folder):
    with pytest.raises(ValueError, match="are for files"):
        run(folder, "sst2", "--text-column", "x")
