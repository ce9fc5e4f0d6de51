import json
import shutil

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from lexical_sae.commands import evaluate as script
from lexical_sae.data import load_text_dataset
from lexical_sae.evaluation.names import tests as names
from lexical_sae.evaluation.results import EvaluationResults
from lexical_sae.evaluation.views.page import evaluation_part
from lexical_sae.models.persistence import from_pretrained, save_pretrained
from lexical_sae.runs import Run, unseen_texts
from lexical_sae.runs.measuring import evaluating
from tests import tiny
from tests.commands.runs import LABELS
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
    shown = evaluation_part(EvaluationResults.from_dict(found))
    assert shown.about.startswith(f"On 7 texts of {reviews}.")
    assert all(topic.figures.rows and topic.tables for topic in shown.topics), "a page can show all that was written"
    # Three texts of the seven are negative; they count as the model numbers its classes.
    assert [own["texts"] for own in found["performance"]["classes"]] == [4, 0, 3]


def test_names_are_tried_on_the_texts_that_are_given(run, folder, reviews, tmp_path):
    shown = run(folder, reviews, "--names-texts", 5, "--out", tmp_path / "with.json").stdout
    assert "Do the names hold? The model on 5 texts" in shown
    found = json.loads((tmp_path / "with.json").read_text())["names"]
    assert (found["texts"], "share" in found["follow"]["passed"], found["random_head"] is None) == (5, True, False)
    shown = run(folder, reviews, "--names-texts", 0, "--out", tmp_path / "without.json").stdout
    assert "Do the names hold?" not in shown
    assert "names" not in json.loads((tmp_path / "without.json").read_text())


def test_attribution_methods_are_compared_on_as_many_texts_as_asked_for(run, folder, reviews, tmp_path):
    out, few = tmp_path / "found.json", ("--names-texts", 0)
    shown = run(folder, reviews, "--explainer-texts", 2, "--out", out, *few).stdout
    assert "Attribution methods compared" in shown
    assert json.loads(out.read_text())["explainers"]["texts"] == 2
    shown = run(folder, reviews, "--explainer-texts", 0, "--out", out, *few).stdout
    assert "Attribution methods not compared: switched off" in shown
    assert json.loads(out.read_text())["explainers"] is None


def test_the_file_and_the_rows_can_be_chosen(run, folder, reviews, tmp_path):
    out = tmp_path / "deep" / "mine.json"
    with reviews.open("a") as file:
        file.write('"",positive\n')
    run(folder, reviews, "--skip-bad-rows", "--out", out, "--texts", 3, "--seed", 1)
    assert json.loads(out.read_text())["texts"] == 3


@pytest.fixture
def trained(folder, tmp_path):
    """A model in the folder of a run, and the file that the run was made of."""
    rows = [f'"{text} {i}",{LABELS[i % 3]}' for i in range(9) for text in filter(None, TEXTS)]
    data = write(tmp_path / "all.csv", rows, "text,label")
    shutil.copytree(folder, tmp_path / "run" / "model", ignore=shutil.ignore_patterns("evaluation.json"))
    settings = f"data: {{dataset_name: '{data}'}}\nmechanistic: {{circuit_fraction: 0.3}}\n"
    (tmp_path / "run" / "resolved_config.yaml").write_text(settings)
    (tmp_path / "run" / "evaluation.json").write_text("the run's own")
    return tmp_path / "run" / "model", data


def unseen(trained, data):
    model, _ = trained
    return unseen_texts(from_pretrained(model), Run(model.parent), str(data))


def test_of_the_file_that_a_run_was_made_of_only_its_test_texts_are_measured(run, trained):
    model, data = trained
    test = load_text_dataset(data).test
    assert unseen(trained, data).split == test
    shown = run(model, data, "--texts", 5).stdout
    assert f"this model was trained on {data}: only the {len(test)} test texts of its run are used" in shown
    found = json.loads((model.parent / "evaluation.json").read_text())
    assert (found["texts"], found["split"], found["most_texts"]) == (5, "test", 5)
    assert found["separation"]["fraction"] == 0.3, "the run's own size of circuits"


def test_how_frequent_words_are_is_counted_as_after_training(run, trained, monkeypatch):
    model, data = trained
    dataset, asked = load_text_dataset(data), []
    measure = names.measure_names
    monkeypatch.setattr(evaluating, "measure_names", lambda *given: asked.append(given[1:3]) or measure(*given))
    run(model, data, "--names-texts", 5)
    assert asked == [(dataset.test.texts, dataset.train.texts)]


def test_texts_that_a_run_learned_from_are_left_out_and_its_own_evaluation_stays(run, trained, tmp_path):
    model, data = trained
    old = data.read_text().splitlines()[1:]
    more = write(tmp_path / "more texts.csv", [*old, '"a new film",positive', '"a new plot",negative'], "text,label")
    kept = len(load_text_dataset(data).test) + 2
    found = unseen(trained, more)
    assert len(found.split) == kept
    assert found.split.texts[-2:] == ("a new film", "a new plot")
    shown = run(model, more, "--texts", 5).stdout
    assert f"this model was trained on {len(old) + 2 - kept} of the {len(old) + 2} texts of {more}" in shown
    assert "written to" in shown
    assert (model.parent / "evaluation.json").read_text() == "the run's own"
    assert json.loads((model.parent / "evaluation-more texts.json").read_text())["texts"] == 5


def test_texts_that_a_run_learned_from_are_known_however_they_are_spaced_and_punctuated(trained, tmp_path):
    dataset = load_text_dataset(trained[1])
    kept = dataset.test.texts[0]
    texts = [*(f"<< {text.upper()} >> !" for text in dataset.train.texts[:3]), f"{kept} .", "a new film"]
    found = unseen(trained, write(tmp_path / "spaced.csv", [f'"{text}",positive' for text in texts], "text,label"))
    assert found.split.texts == (f"{kept} .", "a new film")
    assert "trained on 3 of the 5 texts" in found.warning


def test_nothing_but_texts_that_a_run_learned_from_is_refused(trained, tmp_path):
    dataset = load_text_dataset(trained[1])
    train, names = dataset.train, dataset.label_names
    rows = [f'"{text}",{names[label]}' for text, label in zip(train.texts, train.labels, strict=True)]
    with pytest.raises(ValueError, match="trained on every text of .*give texts that it has not seen"):
        unseen(trained, write(tmp_path / "learned.csv", rows, "text,label"))


def test_texts_that_a_run_has_not_seen_are_measured_without_a_word(trained, reviews):
    found = unseen(trained, reviews)
    assert (len(found.split), found.warning, found.tested) == (7, "", None)


def test_data_that_changed_or_is_gone_since_training_is_told(trained, reviews):
    model, data = trained
    decisions = {"test_digest": "another", "is_correct": "", "texts": ""}
    (model.parent / "decisions.json").write_text(json.dumps(decisions))
    changed = unseen(trained, data)
    assert f"which of these texts the model was trained on: its run's data cannot be had ({data.name} has changed" in (
        changed.warning
    )
    assert changed.tested is None, "so the run's own evaluation stays"
    data.unlink()
    assert "no file or folder" in unseen(trained, reviews).warning


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


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("somedir", "somedir: it is a folder"),
        ("my reviews.csv/x.json", r"my reviews\.csv is a file, not a folder"),
        ("my reviews.csv", "it is read, and would be lost"),
    ],
    ids=["folder", "in a file", "input"],
)
def test_a_place_where_nothing_can_be_written_is_told_before_the_model_is_read(run, reviews, tmp_path, out, message):
    (tmp_path / "somedir").mkdir()
    before = reviews.read_bytes()
    with pytest.raises(ValueError, match=message):
        run(tmp_path / "no model", reviews, "--out", tmp_path / out)
    assert reviews.read_bytes() == before


def test_a_folder_in_the_usual_place_is_told_before_anything_is_measured(run, trained, monkeypatch):
    model, data = trained
    (model.parent / "evaluation.json").unlink()
    (model.parent / "evaluation.json").mkdir()
    monkeypatch.setattr(evaluating, "evaluate", lambda *_: pytest.fail("measured in vain"))
    with pytest.raises(ValueError, match=r"evaluation\.json: it is a folder; give the file to write in it as --out"):
        run(model, data)


def test_no_file_is_told(run, folder):
    with pytest.raises(FileNotFoundError, match="no file"):
        run(folder, "nowhere.csv")


def test_columns_beside_a_named_set_are_refused(run, folder):
    with pytest.raises(ValueError, match="are for files"):
        run(folder, "sst2", "--text-column", "x")
