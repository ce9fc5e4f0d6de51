import json
import shutil

import pytest

from lexical_sae.commands.train import train_and_show
from lexical_sae.config.load import build_config
from lexical_sae.data import files, load_text_dataset
from lexical_sae.models import persistence
from lexical_sae.runs import Run, run_experiment
from lexical_sae.runs import run as run_module
from lexical_sae.utils.errors import DataError, SavedFileError
from tests.runs.experiments import tiny_settings


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """The settings of a run that is trained and evaluated."""
    place = tmp_path_factory.mktemp("run")
    settings = {**tiny_settings(place), "output_dir": str(place / "run")}
    settings |= {"evaluation": {"texts": 6, "names_texts": 4, "explainer_texts": 1}}
    settings["training"]["max_epochs"] = 1
    return build_config(settings)


@pytest.fixture(scope="module")
def folder(config):
    run_experiment(config, device="cpu")
    return Run.of(config).folder


@pytest.fixture
def reads(monkeypatch):
    """How often a table of texts was parsed, and a saved model loaded."""
    counts = {"tables": 0, "models": 0}

    def counting(name, plain):
        def read(*given, **named):
            counts[name] += 1
            return plain(*given, **named)

        return read

    monkeypatch.setattr(files, "read_table", counting("tables", files.read_table))
    for module in (run_module, persistence):
        monkeypatch.setattr(module, "from_pretrained", counting("models", persistence.from_pretrained))
    return counts


def test_training_reads_its_file_once_and_loads_the_saved_model_once(config, reads, tmp_path, capsys):
    train_and_show(config.model_copy(update={"output_dir": str(tmp_path / "run")}), "cpu", resume=False, baselines=True)
    assert "Report, to open in a browser" in capsys.readouterr().out
    assert reads == {"tables": 1, "models": 1}


def test_a_run_is_opened_by_its_folder_or_its_models(folder):
    for path in (folder, str(folder), folder / "model"):
        assert Run.open(path).folder.resolve() == folder.resolve()
    with pytest.raises(SavedFileError, match="holds no run: it has no resolved_config.yaml; its runs are in run"):
        Run.open(folder.parent)


def test_a_run_has_what_training_left(folder, config, reads):
    run = Run.open(folder)
    assert (run.config, run.seed, run.seeds) == (config, 0, (run,))
    assert run.results == json.loads((folder / "results.json").read_text())
    assert (run.evaluation["texts"], run.names["model"]["texts"], run.baselines) == (6, 4, None)
    assert run.history == [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    assert sum(run.decisions.is_correct) == run.results["test"]["accuracy"] * run.results["test"]["texts"]
    assert reads == {"tables": 0, "models": 0}
    assert run.data.test == load_text_dataset(config.data.dataset_name).test
    assert run.data is run.data
    assert run.model is run.model
    run.release()
    _ = run.model
    assert reads["models"] == 2


def test_data_that_changed_since_training_is_refused(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "run")
    (tmp_path / "run" / "decisions.json").write_text('{"test_digest": "x", "is_correct": "", "texts": ""}')
    with pytest.raises(ValueError, match="has changed since the run in .* was made"):
        _ = Run.open(tmp_path / "run").data


def test_a_damaged_file_is_refused_with_its_place(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "run")
    (tmp_path / "run" / "names.json").write_text("{")
    with pytest.raises(SavedFileError, match=r"names\.json cannot be read .*; delete it"):
        _ = Run.open(tmp_path / "run").names


def test_name_scores_of_earlier_versions_still_open(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "run")
    written = (folder / "names.json").read_text()
    assert '"lexical_neighbours"' in written
    (tmp_path / "run" / "names.json").write_text(written.replace('"lexical_neighbours', '"neighbourhood'))
    assert Run.open(tmp_path / "run").names == Run.open(folder).names


def test_texts_that_the_model_learned_from_are_left_out(folder):
    run = Run.open(folder)
    train, test = run.data.train, run.data.test
    found = run.unseen([train.texts[0], test.texts[0], "a new film"], [1, "1", "0"])
    assert (found.split.texts, found.split.labels) == ((test.texts[0], "a new film"), (1, 0))
    assert "trained on 1 of the 3 texts of your data" in found.warning
    assert run.unseen(["a new film"]).warning == ""
    with pytest.raises(DataError, match="trained on every text of my texts"):
        run.unseen(train.texts, name="my texts")


def test_of_several_seeds_the_first_is_taken(config, tmp_path):
    several = config.evaluation.model_copy(update={"seeds": (3, 4), "after_training": False})
    own = config.model_copy(update={"evaluation": several, "output_dir": str(tmp_path / "run")})
    run_experiment(own, device="cpu")
    for run in (Run.open(tmp_path / "run"), Run.of(own)):
        assert [one.seed for one in run.seeds] == [3, 4]
        assert run.model_folder == tmp_path / "run" / "seed-3" / "model"
        assert run.data == run.seeds[0].data != run.seeds[1].data
        assert [one["seed"] for one in run.results["runs"]] == [3, 4]
