import json

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from lexical_sae.commands import corpus as script
from lexical_sae.models.persistence import save_pretrained
from tests import tiny
from tests.evaluation.corpora import TEXTS

app = typer.Typer()
app.command()(script.lexicon)
app.command()(script.diff)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_pretrained(tiny.model(), tmp_path_factory.mktemp("models") / "model")


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "my texts.csv"
    rows = [f'"{text}",{("negative", "positive")[i % 2]}' for i, text in enumerate(filter(None, TEXTS))]
    path.write_text("\n".join(["review,verdict", *rows]) + "\n")
    return path


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr(script, "console", Console(width=200))
    return lambda *arguments: CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


def test_the_lexicon_of_a_file_is_printed_and_written_as_json(run, folder, texts):
    output = run("lexicon", folder, "--file", texts).stdout
    assert "mean contribution" in output
    assert "Regions" in output
    found = json.loads(run("lexicon", folder, "--file", texts, "--top", 2, "--json").stdout)
    assert found["lexicon"]["texts"] == 7
    assert [own["label"] for own in found["lexicon"]["classes"]] == ["negative", "neutral", "positive"]
    assert max(len(own["contributes_to"]) for own in found["lexicon"]["classes"]) == 2


def test_texts_count_under_their_labels_when_asked(run, folder, texts):
    found = json.loads(run("lexicon", folder, "--file", texts, "--labelled", "--class", "negative", "--json").stdout)
    assert [(own["label"], own["texts"]) for own in found["lexicon"]["classes"]] == [("negative", 4)]
    assert list(found["weights"]) == ["negative"]


def test_a_word_has_pages(run, folder, texts):
    found = json.loads(run("lexicon", folder, "--file", texts, "--word", "dog", "--json").stdout)
    assert [page["name"] for page in found["pages"]] == ["dog", "dogs"]
    assert [page["written_in"] for page in found["pages"]] == [0, 2]
    assert "dogs" in run("lexicon", folder, "--file", texts, "--word", "dog").stdout


def test_two_models_are_compared(run, folder, texts):
    found = json.loads(run("diff", folder, folder, "--file", texts, "--labelled", "--json").stdout)
    assert (found["texts"], found["flipped"]) == (7, 0)
    assert found["accuracy"]["before"] == found["accuracy"]["after"]
    assert "no word changed" in run("diff", folder, folder, "--file", texts).stdout


def test_a_named_data_set_is_read_by_its_test_texts(run, folder, texts):
    found = json.loads(run("lexicon", folder, "--data", texts, "--json").stdout)
    assert 0 < found["lexicon"]["texts"] < 7


@pytest.mark.parametrize(
    ("lines", "arguments", "message"),
    [
        ([], (), "give either your texts"),
        (["text", "a film"], ("--class", "positiv"), "did you mean 'positive'"),
        (["text", "a film"], ("--word", "playing"), "has no dimension of its own"),
        (["text,label", "a film,odd"], ("--labelled",), "class 'odd' is not a label of this model"),
        (["text,x", "a film,1", '"",1'], (), r"in column 'text': .*:3 .empty text.; .* --skip-bad-rows"),
        (["a,b,c", "1,2,3"], (), "which column holds the texts"),
        (["x,y", "a film so long,1"], (), "Name it with --text-column. Columns seen: x, y"),
        (["a,b,c", "1,2,3"], ("--text-column", "d"), "has no column 'd'"),
    ],
    ids=["no texts", "class", "word", "label", "empty text", "column", "two columns", "unknown column"],
)
def test_slips_are_told_in_a_sentence(run, folder, tmp_path, lines, arguments, message):
    path = tmp_path / "texts.csv"
    path.write_text("\n".join(lines))
    given = ("--file", path) if lines else ()
    with pytest.raises(ValueError, match=message):
        run("lexicon", folder, *given, *arguments)


@pytest.mark.parametrize("lines", [["only", "a film"], ["Text,x,y", "a film,1,2"]], ids=["one", "named"])
def test_a_file_needs_no_labels(run, folder, tmp_path, lines):
    path = tmp_path / "texts.csv"
    path.write_text("\n".join(lines))
    assert json.loads(run("lexicon", folder, "--file", path, "--json").stdout)["lexicon"]["texts"] == 1


def test_columns_beside_a_named_set_are_refused(run, folder):
    with pytest.raises(ValueError, match="are for files"):
        run("lexicon", folder, "--data", "sst2", "--text-column", "x")


def test_rows_without_a_text_are_left_out_when_asked_and_told(run, folder, tmp_path, texts):
    path = tmp_path / "texts.csv"
    path.write_text(texts.read_text() + '"",positive\n')
    for labelled in ((), ("--labelled",)):
        result = run("lexicon", folder, "--file", path, *labelled, "--skip-bad-rows", "--json")
        assert json.loads(result.stdout)["lexicon"]["texts"] == 7
        assert "left out" in result.stderr
        assert "texts.csv:9 (empty text)" in result.stderr
    path.write_text('review\n""\n')
    with pytest.raises(ValueError, match="no row with a text in column 'review'"):
        run("lexicon", folder, "--file", path, "--skip-bad-rows")
