import json

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from lexical_sae.commands import corpus, edit
from lexical_sae.intervene import FREQUENCIES_FILE, model_table
from lexical_sae.models.persistence import from_pretrained, save_pretrained
from tests.literal import TEXTS, UNSEEN, literal_model

SCRIPTS = {"lexicon": corpus, "edit": edit, "certify": edit, "verify": edit}
app = typer.Typer()
for name, script in SCRIPTS.items():
    app.command(name)(getattr(script, name))


@pytest.fixture
def run(monkeypatch):
    for script in SCRIPTS.values():
        monkeypatch.setattr(script, "console", Console(width=200))
    return lambda *arguments: CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "model"
    return save_pretrained(literal_model(), folder, attached={FREQUENCIES_FILE: json.dumps({"film": 12})})


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "reviews.csv"
    rows = [f'"{text}",{("negative", "positive")[i % 2]}' for i, text in enumerate([*TEXTS, *UNSEEN])]
    path.write_text("\n".join(["text,label", *rows]) + "\n")
    return path


@pytest.fixture
def table(run, model, tmp_path):
    path = tmp_path / "words.csv"
    assert "lexical-sae edit" in run("lexicon", model, "--table", path).stdout
    return path


def changed(table, **rows):
    """The table with other lines for some words."""
    lines = table.read_text(encoding="utf-8-sig").splitlines()
    kept = [line for line in lines if line.partition(",")[0] not in rows]
    table.write_text("\n".join([*kept, *(f"{word},{rest}" for word, rest in rows.items())]) + "\n")


def test_a_table_is_written_edited_certified_and_verified(run, model, table, texts, tmp_path):
    assert "film," in table.read_text()
    assert ",12," in table.read_text()
    changed(table, film="9,0,-9,,", good="9,0,-9,,", boringly="9,0,-9,,", church=",,,,", unhappyness="1,0,-1,,true")
    edited = tmp_path / "edited"
    shown = run("edit", model, table, "--out", edited, "--file", texts, "--labelled").stdout
    assert "church, churches" in shown
    assert "-9.000" in shown
    assert "accuracy" in shown
    assert "texts get another label" in shown
    assert "→ negative" in shown
    proof = tmp_path / "edited.certificate.json"
    assert str(tmp_path) not in proof.read_text()
    result = run("verify", proof, edited, "--file", texts, "--original", model)
    assert result.exit_code == 0
    assert "FAILS" not in result.stdout
    rows = {row.word: row for row in model_table(from_pretrained(edited)).rows}
    assert rows["boringly"].weights == (9.0, 0.0, -9.0)
    assert rows["unhappyness"].suppress
    again = tmp_path / "again.json"
    assert "changed" in run("certify", model, edited, "--file", texts, "--out", again).stdout


def test_a_table_as_it_was_written_changes_nothing(run, model, table, tmp_path):
    with pytest.raises(ValueError, match="change a weight, or suppress a word"):
        run("edit", model, table, "--out", tmp_path / "edited")
    assert not (tmp_path / "edited").exists()
    assert not (tmp_path / "edited.certificate.json").exists()


def test_nothing_is_written_over(run, model, table, tmp_path):
    with pytest.raises(ValueError, match="may hold your edits"):
        run("lexicon", model, "--table", table)
    changed(table, film="9,0,-9,,")
    edited = tmp_path / "edited"
    run("edit", model, table, "--out", edited)
    with pytest.raises(ValueError, match="edited exists already; choose another --out"):
        run("edit", model, table, "--out", edited)
    with pytest.raises(ValueError, match=r"certificate\.json exists already; choose another --certificate"):
        run("edit", model, table, "--out", tmp_path / "other", "--certificate", tmp_path / "edited.certificate.json")
    with pytest.raises(ValueError, match="holds no files but the model's"):
        run("edit", model, table, "--out", tmp_path / "other", "--certificate", tmp_path / "other" / "c.json")
    assert not (tmp_path / "other").exists()


def test_the_table_takes_no_texts(run, model, texts, tmp_path):
    with pytest.raises(ValueError, match="leave out --file, --data, --word and --class"):
        run("lexicon", model, "--table", tmp_path / "words.csv", "--file", texts)


def test_an_unseen_word_has_a_page_and_is_compared(run, model, texts, tmp_path):
    found = json.loads(run("lexicon", model, "--file", texts, "--word", "boringly", "--json").stdout)
    pages = {page["name"]: page for page in found["pages"]}
    assert pages["boringly"]["written_in"] == 2
    (tmp_path / "lexicon.yaml").write_text("forbid: [boringly]\n")
    shown = run("edit", model, tmp_path / "lexicon.yaml", "--out", tmp_path / "edited", "--file", texts).stdout
    assert "boringly" in shown
    assert run("verify", tmp_path / "edited.certificate.json", tmp_path / "edited", "--file", texts).exit_code == 0
