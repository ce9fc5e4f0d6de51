import json
import re
import signal
import subprocess
import sys

import pytest

from lexical_sae.explanation import Explanation
from lexical_sae.models.persistence import from_pretrained, save_pretrained
from lexical_sae.training.loop import Trainer
from tests import tiny

ROWS = [("a good film", "pos"), ("a very good movie", "pos"), ("great acting", "pos"), ("wonderful plot", "pos")]
ROWS += [("a bad film", "neg"), ("a boring movie", "neg"), ("awful acting", "neg"), ("terrible plot", "neg")]


@pytest.fixture
def encoder(tmp_path):
    return tiny.saved_encoder(tmp_path / "encoder")


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "my reviews.csv"
    lines = [f"{text} {i % 7},{label}" for i, (text, label) in enumerate(ROWS * 8)]
    path.write_text("\n".join(["review,verdict", *lines]) + "\n")
    return path


@pytest.fixture
def tiny_run(encoder, csv, tmp_path):
    """An experiment of a few steps on a tiny encoder."""
    path = tmp_path / "run.yaml"
    path.write_text(
        f"data: {{dataset_name: '{csv}'}}\nmodel: {{name: '{encoder}', max_length: 16}}\n"
        "training: {max_epochs: 2, batch_size: 16}\nevaluation: {seeds: [1], after_training: false}\n"
    )
    return path


def test_training_on_an_own_file_leaves_a_run_and_a_model_that_explains(run, tiny_run, tmp_path):
    tiny_run.write_text(tiny_run.read_text().replace("after_training: false", "texts: 3, names_texts: 2"))
    code, output, error = run("train", "--config", str(tiny_run), "--out", str(tmp_path / "run"))
    assert (code, error) == (0, "")
    for expected in ("accuracy", "active words", "identity error", "verdict", "everything is in"):
        assert expected in output
    left = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"resolved_config.yaml", "results.json", "history.jsonl", "environment.json", "model"} <= left
    assert "checkpoint" not in left
    page = (tmp_path / "run" / "report.html").read_text()
    assert "How well does it decide?" in page
    assert "On 3 texts of" in page
    for told in ("TF-IDF", "frozen encoder", "macro F1"):
        assert told in page
        assert told in output
    for told in ("Do the names hold? The model on 2 texts", "deletion test", "context-free accuracy"):
        assert told in page
        assert told in output
    assert from_pretrained(tmp_path / "run" / "model").labels == {"classify": ("neg", "pos")}
    code, output, _ = run("explain", str(tmp_path / "run" / "model"), "a good film", "", "--top", "2")
    assert code == 0
    assert "good" in output
    assert output.count("bias  ") == 2


def test_a_table_alone_is_trained_and_its_words_never_shift(run, tiny_run, tmp_path):
    tiny_run.write_text(tiny_run.read_text().replace("after_training: false", "texts: 3, names_texts: 2"))
    out = tmp_path / "table"
    code, output, error = run("train", "--config", str(tiny_run), "--table-only", "--out", str(out))
    assert (code, error) == (0, "")
    assert from_pretrained(out / "model").context is None
    evaluation = json.loads((out / "evaluation.json").read_text())
    assert evaluation["context"]["shifts"]["mean"] == 0
    assert evaluation["context"]["context_free"]["mean"] == evaluation["performance"]["accuracy"]["mean"]
    tiny_run.write_text("recipe: cis\n" + tiny_run.read_text())
    code, _, error = run("train", "--config", str(tiny_run), "--table-only", "--out", str(tmp_path / "other"))
    assert code == 1
    assert "recipe cis has no table of words" in error


def test_errors_are_one_sentence_and_a_non_zero_exit(run, tmp_path):
    for arguments, message in [
        (("explain", str(tmp_path), "text"), "is not a saved model"),
        (("train",), "give either a data set"),
        (("train", "no_such_set", "--out", str(tmp_path / "run")), "is unknown"),
        (("train", str(tmp_path / "none.csv"), "--out", str(tmp_path / "run")), "no file or folder"),
        (("train", "--config", str(tmp_path / "none.yaml")), "no experiment file"),
    ]:
        code, _, error = run(*arguments)
        assert code == 1
        assert message in error
        assert "Traceback" not in error


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A tiny model in a folder."""
    return str(save_pretrained(tiny.model(), tmp_path_factory.mktemp("saved") / "model"))


def test_text_and_labels_from_outside_are_not_obeyed_by_the_terminal(run, saved):
    code, output, _ = run("explain", saved, "[bold]good[/bold] \x1b[31mfilm\x07")
    assert code == 0
    assert "[bold]good[/bold]" in output
    assert "\x07" not in output


def test_explain_shows_places_effects_and_limits_and_is_plain_when_piped(run, saved):
    code, output, _ = run("explain", saved, "a good film", "--top", "3")
    assert code == 0
    for expected in ("a good film", "if removed", "activated by", "in the text:", "sum", "single removals switch"):
        assert expected in output
    assert "\x1b" not in output


def test_explain_prints_a_json_object_per_line(run, saved, csv):
    asked = ("--target", "neutral", "--contrast", "negative", "--method", "path", "--json")
    code, output, _ = run("explain", saved, "--file", str(csv), *asked)
    assert code == 0
    found = [Explanation.from_json(line) for line in output.splitlines()]
    assert len(found) == 64
    assert found[1].text == "a very good movie 1"
    assert {(why.target, why.contrast, why.method) for why in found} == {("neutral", "negative", "path")}


def test_explain_writes_a_page(run, saved, csv, tmp_path):
    page = tmp_path / "why.html"
    code, output, _ = run("explain", saved, "--file", str(csv), "--html", str(page))
    assert code == 0
    assert str(page) in output.replace("\n", "")
    assert "Content-Security-Policy" in page.read_text()
    code, _, error = run("explain", saved, "a good film", "--html", str(page), "--json")
    assert code == 1
    assert "leave out --windows and --json" in " ".join(error.split())


def test_home_is_home_after_an_equals_sign_too(run, saved, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert run("explain", saved, "a film", "--html=~/why.html")[0] == 0
    assert (tmp_path / "home" / "why.html").exists()
    assert not (tmp_path / "~").exists()
    # A text stays as it was given.
    assert json.loads(run("explain", saved, "a=~/film", "--json")[1])["text"] == "a=~/film"


def test_explain_refuses_a_place_for_its_page_before_it_loads_a_model(run, csv, tmp_path):
    kept = csv.read_text()
    for page, said in ((tmp_path, "it is a folder; give the file to write in it as --html"), (csv, "would be lost")):
        code, _, error = run("explain", str(tmp_path / "no model"), "--file", str(csv), "--html", str(page))
        assert code == 1
        assert said in " ".join(error.split())
    assert csv.read_text() == kept


def test_explain_reads_long_texts_in_windows(run, saved):
    code, output, _ = run("explain", saved, "a good film " * 60, "--windows", "--json")
    assert code == 0
    windows = [json.loads(line) for line in output.splitlines()]
    assert len(windows) > 2
    assert all(window["explanation"]["tokens_cut"] == 0 for window in windows)
    code, output, _ = run("explain", saved, "a good film " * 60, "--windows")
    assert output.count("decided by themselves") == len(windows)


def test_why_not_sets_two_labels_against_each_other(run, saved):
    said = json.loads(run("explain", saved, "a good film", "--json")[1])["label"]
    other = next(label for label in ("negative", "positive") if label != said)
    code, output, _ = run("why-not", saved, "a good film", other)
    assert code == 0
    assert f"contributions for {said}, not {other}" in output
    code, _, error = run("why-not", saved, "a good film", said)
    assert code == 1
    assert f"does get the label '{said}'" in error


def test_flip_finds_words_and_says_what_is_proved(run, saved):
    code, output, error = run("flip", saved, "a good film")
    assert (code, error) == (0, "")
    assert "proved" in output
    assert "active words" in output
    found = json.loads(run("flip", saved, "a good film", "--json")[1])
    assert found["flip"]["is_minimal"] or found["flip"]["is_impossible"]


def test_slips_of_explain_are_sentences(run, saved, tmp_path):
    table = tmp_path / "odd.csv"
    table.write_text("one,two\nx,y\n")
    gap = tmp_path / "gap.csv"
    gap.write_text("text,label\ngood,1\n,0\n")
    for arguments, message in [
        (("explain", saved), "give either texts"),
        (("explain", saved, "good", "--file", str(table)), "give either texts"),
        (("explain", saved, "good", "--text-column", "one"), "names a column of --file"),
        (("explain", saved, "--file", str(table)), "Name it with --text-column. Columns seen: one, two"),
        (("explain", saved, "--file", str(gap)), "gap.csv:3 (empty text)"),
        (("explain", saved, "good", "--target", "positiv"), "did you mean 'positive'"),
        (("explain", saved, "good", "--method", "magic"), "method 'magic' is unknown"),
        (("why-not", saved, "good", "bad"), "contrast 'bad' is not a label"),
        (("flip", saved, "good", "--to", "bad"), "to 'bad' is not a label"),
    ]:
        code, _, error = run(*arguments)
        assert code == 1
        assert message in error.replace("\n", " ")
        assert "Traceback" not in error


def test_rows_without_a_text_are_not_explained_when_asked(run, saved, tmp_path):
    gap = tmp_path / "gap.csv"
    gap.write_text('text,label\n"a good film",1\n"",0\n')
    code, output, error = run("explain", saved, "--file", str(gap), "--skip-bad-rows", "--json")
    assert (code, [json.loads(line)["text"] for line in output.splitlines()]) == (0, ["a good film"])
    assert "left out 1 of 2 rows, without a text" in error


def test_a_long_wait_shows_how_far_it_is_on_standard_error(run, saved, csv, monkeypatch):
    monkeypatch.setattr("lexical_sae.commands.explain.PATIENCE", -1.0)
    _, output, error = run("explain", saved, "--file", str(csv), "--json")
    assert "explaining 64/64" in error
    assert "explaining" not in output
    monkeypatch.setattr("lexical_sae.commands.explain.PATIENCE", 1000.0)
    assert "explaining" not in run("explain", saved, "good", "--json")[2]


@pytest.mark.parametrize("command", ["explain", "why-not", "flip"])
def test_help_teaches_with_an_example(run, command):
    code, output, _ = run(command, "--help")
    assert code == 0
    assert f"Example: lexical-sae {command} results/quickstart " in output


def test_paragraphs_of_a_help_text_are_broken_by_the_terminal_alone(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    output = run("explain", "--help")[1]
    assert '"activated by" is the word of the text that activates a feature. ' in output
    assert "\n\n" in re.sub(" +\n", "\n", output)


def test_version_and_help(run):
    assert run("--version")[:2] == (0, "lexical-sae 0.1.0\n")
    code, output, _ = run("--help")
    assert code == 0
    assert all(command in output for command in ("quickstart", "train", "explain", "fit-lexical-head"))


def test_help_does_not_wait_for_torch():
    script = """
import sys
from lexical_sae.cli import main
sys.argv = ["lexical-sae", "--help"]
try:
    main()
except SystemExit:
    sys.exit("torch" in sys.modules)
"""
    result = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert result.returncode == 0
    assert "quickstart" in result.stdout


def test_a_folder_that_holds_a_run_is_refused_before_training(run, csv, tmp_path, monkeypatch):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "results.json").write_text("{}")
    monkeypatch.setattr("lexical_sae.runs.experiment.setup_and_train", lambda *_, **__: pytest.fail("training began"))
    code, _, error = run("train", str(csv), "--out", str(tmp_path / "taken"))
    assert code == 1
    assert "already holds a run" in error
    assert "--resume" in error


def test_ctrl_c_saves_says_so_and_fails_and_the_run_can_go_on(run, tiny_run, tmp_path, monkeypatch):
    seen = []
    plain_step = Trainer._take_step

    def take_step(self, rows):
        plain_step(self, rows)
        seen.append(self.step)
        if len(seen) == 3:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Trainer, "_take_step", take_step)
    code, _, error = run("train", "--config", str(tiny_run), "--out", str(tmp_path / "run"))
    assert code == 130
    assert "stopped after step 3" in error
    assert "--resume" in error
    code, output, error = run("train", "--config", str(tiny_run), "--out", str(tmp_path / "run"), "--resume")
    assert (code, error) == (0, "")
    assert seen[:4] == [1, 2, 3, 4]
    history = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
    assert [record["step"] for record in history if "step" in record] == sorted(set(seen))
    assert "accuracy" in output
    code, _, error = run("train", "--config", str(tiny_run), "--out", str(tmp_path / "run"))
    assert (code, "already holds a run" in error) == (1, True)


def test_several_seeds_give_a_mean_with_its_interval(run, tiny_run, tmp_path):
    tiny_run.write_text(tiny_run.read_text().replace("seeds: [1]", "seeds: [1, 2]"))
    code, output, _ = run("train", "--config", str(tiny_run), "--out", str(tmp_path / "run"))
    assert code == 0
    assert "Mean of 2 seeds" in output
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert [r["seed"] for r in results["runs"]] == [1, 2]
    accuracy = results["mean"]["accuracy"]
    assert accuracy["low"] <= accuracy["mean"] <= accuracy["high"]
    assert from_pretrained(tmp_path / "run" / "seed-2" / "model").labels == {"classify": ("neg", "pos")}


def test_columns_beside_a_config_are_refused_not_ignored(run, tmp_path):
    (tmp_path / "run.yaml").write_text("seed: 1\n")
    code, _, error = run("train", "--config", str(tmp_path / "run.yaml"), "--text-column", "x")
    assert code == 1
    assert "text_column" in error
