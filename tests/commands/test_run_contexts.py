import json

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from lexical_sae.commands import studies
from lexical_sae.config.load import load_config
from lexical_sae.models.persistence import save_pretrained
from lexical_sae.runs import load_data
from lexical_sae.runs.folder import CONFIG
from lexical_sae.studies.long_context import measuring as long_context
from tests import tiny
from tests.data.sources.test_senses import COARSE, PAIRS, write
from tests.tiny import BAD, GOOD

app = typer.Typer()
app.command("long-context")(studies.long_context)
app.command("polysemy")(studies.polysemy)


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr(studies, "console", Console(width=250))
    return lambda *arguments: CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("contexts")
    rows = [f"{text} {i},{'negative' if text in BAD else 'positive'}" for i in range(8) for text in (*GOOD, *BAD)]
    rows += [f"{text} and {text} {i},neutral" for i in range(8) for text in GOOD]
    (folder / "texts.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    path = folder / "experiment.yaml"
    path.write_text(f"output_dir: '{folder / 'run'}'\ndata: {{dataset_name: '{folder / 'texts.csv'}'}}\n")
    save_pretrained(tiny.model(), folder / "run" / "model")
    (folder / "run" / CONFIG).write_text(load_config(path).model_dump_json())
    return path


def test_needles_are_hidden_in_one_command(run, experiment):
    shown = run("long-context", "--config", experiment, "--lengths", "60,20", "--needles", 3).stdout
    assert "20 tokens" in shown
    found = json.loads((experiment.parent / "run" / "long_context.json").read_text())
    assert found["plan"]["lengths"] == [20, 60]
    assert (experiment.parent / "run" / "long_context.html").is_file()


def test_needles_are_test_texts(run, experiment, monkeypatch):
    asked, plain = [], long_context.measure_long_context

    def measure(model, split, *others):
        asked.append(split.texts)
        return plain(model, split, *others)

    monkeypatch.setattr(long_context, "measure_long_context", measure)
    run("long-context", "--config", experiment, "--lengths", "20", "--needles", 100)
    (texts,) = asked
    assert sorted(texts) == sorted(load_data(load_config(experiment), 0).test.texts)


@pytest.mark.parametrize("lengths", ["many", "", "0,5"])
def test_lengths_that_are_none_are_refused(run, experiment, lengths):
    with pytest.raises(ValueError, match="--lengths 128,512"):
        run("long-context", "--config", experiment, "--lengths", lengths)


def test_senses_are_measured_from_local_folders(run, experiment, tmp_path):
    senses, pairs = write(tmp_path / "senses", COARSE), write(tmp_path / "pairs", PAIRS)
    arguments = ("--config", experiment, "--senses", senses, "--pairs", pairs, "--other")
    shown = run("polysemy", *arguments, experiment.parent / "run" / "model").stdout
    assert "the same meaning in two sentences?" in shown
    found = json.loads((experiment.parent / "run" / "polysemy.json").read_text())
    assert len(found) == 2
    assert (experiment.parent / "run" / "polysemy.html").is_file()


def test_senses_that_are_nowhere_are_asked_for(run, experiment, monkeypatch):
    monkeypatch.delenv("LEXICAL_SAE_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="Give its folder"):
        run("polysemy", "--config", experiment)


def test_a_model_is_not_measured_on_data_that_changed_since(run, experiment):
    folder = experiment.parent / "run"
    decisions = {"test_digest": "of other texts", "is_correct": "1", "texts": ""}
    (folder / "decisions.json").write_text(json.dumps(decisions))
    with pytest.raises(ValueError, match="has changed since the run"):
        run("long-context", "--config", experiment, "--lengths", "20", "--needles", 3)
    (folder / "decisions.json").unlink()


def test_a_model_without_the_settings_of_its_run_is_refused_in_words(run, experiment):
    kept = (experiment.parent / "run" / CONFIG).rename(experiment.parent / "kept")
    with pytest.raises(ValueError, match="not known what the model learned from; copy the whole folder"):
        run("long-context", "--config", experiment, "--lengths", "20", "--needles", 3)
    kept.rename(experiment.parent / "run" / CONFIG)
