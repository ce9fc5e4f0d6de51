import json

import pytest
import yaml

from lexical_sae.commands.options import trained_run
from lexical_sae.config.load import load_config
from lexical_sae.models.persistence import save_pretrained
from lexical_sae.runs import Run, experiment
from tests import tiny
from tests.evaluation.corpora import TEXTS


@pytest.fixture
def config(tmp_path):
    """An experiment file on invented rows; its run is not there yet."""
    texts = [f"{text} {i}" for i in range(6) for text in filter(None, TEXTS)]
    rows = [f'"{text}",{("negative", "neutral", "positive")[i % 3]}' for i, text in enumerate(texts)]
    (tmp_path / "texts.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    settings = {"output_dir": str(tmp_path / "run"), "data": {"dataset_name": str(tmp_path / "texts.csv")}}
    (tmp_path / "experiment.yaml").write_text(yaml.safe_dump(settings))
    return tmp_path / "experiment.yaml"


@pytest.fixture
def trainings(monkeypatch):
    """How often, and how, training was asked for; it leaves a tiny model."""
    asked = []

    def train(run, *, resume, watchers):
        del watchers
        asked.append((str(run.folder), resume, run.device))
        save_pretrained(tiny.model(), run.model_folder)
        (run.folder / "resolved_config.yaml").write_text(yaml.safe_dump(json.loads(run.config.model_dump_json())))

    monkeypatch.setattr(experiment, "train_run", train)
    return asked


def test_a_model_that_is_not_there_is_trained_first_and_once(config, trainings, tmp_path, capsys):
    run = trained_run(None, config, None, "cpu", resume=True)
    # Lines are broken where the console ends, in the midst of a path too.
    told = "".join(capsys.readouterr().out.split())
    assert f"thereisnomodelin{tmp_path / 'run' / 'model'}yet;itistrainedfirst" in told
    assert run.model_folder == tmp_path / "run" / "model"
    assert (run.folder, run.seed) == (tmp_path / "run", 0)
    trained_run(None, config, None, "cpu", resume=False)
    assert trainings == [(str(tmp_path / "run"), True, "cpu")]
    assert "trained first" not in capsys.readouterr().out


def test_another_folder_is_another_run(config, trainings, tmp_path):
    trained_run(None, config, tmp_path / "other", "cpu", resume=False)
    assert trainings == [(str(tmp_path / "other"), False, "cpu")]


def test_data_that_cannot_be_had_is_told_before_anything_is_trained(config, trainings, tmp_path):
    (tmp_path / "texts.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"texts\.csv"):
        trained_run(None, config, None, "cpu", resume=False)
    assert trainings == []


def test_a_model_of_other_settings_is_refused(config, trainings):
    experiment.ensure_trained(Run.of(load_config(config), "cpu"))
    config.write_text(config.read_text() + "model: {max_length: 7}\n")
    with pytest.raises(ValueError, match="was made with other settings"):
        experiment.ensure_trained(Run.of(load_config(config), "cpu"))
    assert load_config(config).model.max_length == 7
    assert len(trainings) == 1
