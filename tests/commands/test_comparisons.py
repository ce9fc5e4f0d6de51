"""Every command that trains several experiments, on a tiny encoder."""

import importlib
import json
import runpy
import sys
from pathlib import Path

import pytest
import yaml

import lexical_sae.scripts
from lexical_sae.config.load import load_config
from lexical_sae.runs.comparing import summary as measuring
from lexical_sae.runs.comparing.variants import load_datasets, load_variants
from lexical_sae.runs.measuring import name_tests as naming
from lexical_sae.training.stopping import Interrupted
from tests.runs.experiments import tiny_settings


@pytest.fixture
def write(tmp_path):
    def write(**others):
        settings = {"experiment_name": "tiny", **tiny_settings(tmp_path), "evaluation": {"texts": 3}, **others}
        settings["training"]["max_epochs"] = 1
        (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
        return ["--config", str(tmp_path / "tiny.yaml"), "--out", str(tmp_path / "out"), "--names-texts", "3"]

    return write


def saved(tmp_path):
    return json.loads((tmp_path / "out" / "results.json").read_text())


def test_an_ablation_trains_tests_and_shows(run, write, tmp_path, monkeypatch):
    named, run_names = [], naming.run_names
    monkeypatch.setattr(
        naming, "run_names", lambda *given, **how: named.append(how["texts"]) or run_names(*given, **how)
    )
    arguments = write(variants={"nothing asked": {"training.objective.terms": []}})
    code, output, error = run("ablation", *arguments)
    assert (code, error) == (0, "")
    for expected in ("experiment 2 of 2: nothing asked", "against base", "won : lost", "report.html"):
        assert expected in output
    base, other = saved(tmp_path)["runs"]
    for row in (base, other):
        own = json.loads((tmp_path / "out" / row["figures"]["folder"] / "results.json").read_text())["test"]
        assert row["figures"]["accuracy"] == own["accuracy"]
    expected = other["figures"]["accuracy"] - base["figures"]["accuracy"]
    assert other["difference"]["mean"] == pytest.approx(expected)
    evaluation = json.loads((tmp_path / "out" / "base" / "evaluation.json").read_text())
    sizes = {size["fraction"]: size["circuit"]["agreement"]["mean"] for size in evaluation["completeness"]["sizes"]}
    assert base["figures"]["circuit"] == sizes[0.1]
    code, output, _ = run("ablation", *arguments, "--resume")
    assert code == 0
    assert output.count("seed 0 is finished") == 2
    assert named == [3, 3], "once per experiment, though training tests names too"


def test_data_sets_are_trained_one_after_the_other(run, write, tmp_path):
    first = tiny_settings(tmp_path)["data"]["dataset_name"]
    second = tmp_path / "others.csv"
    second.write_text((tmp_path / "reviews.csv").read_text().replace("film", "movie"))
    code, output, error = run("multi-dataset", *write(datasets=[first, str(second)]))
    assert (code, error) == (0, "")
    assert "test texts" in output
    assert [row["figures"]["folder"] for row in saved(tmp_path)["runs"]] == ["reviews", "others"]


def test_heads_are_compared(run, write, tmp_path):
    code, output, error = run("bcos-ablation", *write(recipe="neighbours"))
    assert (code, error) == (0, "")
    assert "against ReLU-2" in output
    assert [row["name"] for row in saved(tmp_path)["runs"]] == ["ReLU-2", "B-cos-2", "B-cos-3", "B-cos-2, exponent 3"]


def test_recipes_stand_beside_models_without_words(run, write, tmp_path):
    variants = {"cis": {"recipe": "cis", "training.learning_rate": 1e-4}}
    code, output, error = run("sota-comparison", *write(variants=variants))
    assert (code, error) == (0, "")
    found = saved(tmp_path)
    assert [row["name"] for row in found["runs"]] == ["anchored", "cis"]
    assert [row["name"] for row in found["baselines"]] == ["TF-IDF", "frozen encoder", "dense baseline"]
    assert all(row["seconds"] is not None for row in found["baselines"])
    assert "dense baseline" in output


@pytest.mark.parametrize("name", ["ablation", "bcos_ablation", "multi_dataset", "sota_comparison"])
def test_the_promised_scripts_are_the_same_functions(run, name):
    function = getattr(importlib.import_module(f"lexical_sae.scripts.run_{name}"), name)
    command = name.replace("_", "-")
    assert f"lexical-sae {command} --config experiments/" in function.__doc__
    code, output, _ = run(command, "--help")
    assert code == 0
    assert "--resume" in output


@pytest.mark.parametrize("script", sorted(path.stem for path in Path(lexical_sae.scripts.__path__[0]).glob("run_*.py")))
def test_every_promised_script_can_be_run_as_a_module(script, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [script, "--help"])
    # As `python -m` does it: a fresh copy under the name of a program.
    monkeypatch.delitem(sys.modules, f"lexical_sae.scripts.{script}", raising=False)
    with pytest.raises(SystemExit) as end:
        runpy.run_module(f"lexical_sae.scripts.{script}", run_name="__main__")
    assert end.value.code == 0
    assert "--config" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["sst2", "ag_news", "imdb", "banking77"])
def test_one_of_several_data_sets_is_trained_as_by_its_own_file(name):
    place = Path(__file__).parents[2] / "experiments" / "cpu"
    study, alone = load_datasets(place / "multi_dataset.yaml"), load_config(place / f"{name}.yaml")
    (together,) = (variant.config for variant in study.variants if variant.name == name)
    for part in ("data", "model", "training"):
        assert getattr(together, part) == getattr(alone, part)


@pytest.mark.parametrize("name", ["cis", "lexical_sae", "transcoder", "cajt", "neighbours"])
def test_a_recipe_beside_others_is_trained_as_by_its_own_file(name):
    place = Path(__file__).parents[2] / "experiments" / "cpu"
    study, alone = (
        load_variants(place / "sota_comparison.yaml", dict, kind="sota"),
        load_config(place / f"sst2_{name}.yaml"),
    )
    (together,) = (variant.config for variant in study.variants if variant.name == name)
    for part in ("data", "model", "training"):
        assert getattr(together, part) == getattr(alone, part)


def test_slips_and_ctrl_c_end_in_a_sentence(run, write, monkeypatch):
    code, _, error = run("multi-dataset", *write())
    assert (code, "names no data sets" in error) == (1, True)
    code, _, error = run("train", "--config", write(datasets=["sst2"])[1])
    assert (code, "run it with `lexical-sae multi-dataset`" in error.replace("\n", " ")) == (1, True)

    def stop(*_, **__):
        raise Interrupted("stopped after step 3")

    monkeypatch.setattr(measuring, "run_experiment", stop)
    code, _, error = run("ablation", *write())
    assert code == 130
    assert "finished experiments are kept; continue with the same command and --resume" in error.replace("\n", " ")
