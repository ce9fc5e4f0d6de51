import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from lexical_sae.config.load import build_config
from lexical_sae.data import TextSplit, load_text_dataset
from lexical_sae.models.dense_baseline import DenseClassifier
from lexical_sae.report.terminal import baseline_figures
from lexical_sae.runs import Run, compare_again, run_baselines, run_experiment, run_names
from lexical_sae.runs.experiment import train_run
from lexical_sae.runs.inputs import digest, load_data
from lexical_sae.runs.measuring import baselines as baselines
from lexical_sae.runs.measuring.baselines import read_baselines
from lexical_sae.runs.measuring.paired import Decisions, paired_difference, read_decisions
from lexical_sae.training.baselines.dense import dense_baseline
from lexical_sae.training.baselines.fine_tuning import DenseTraining
from lexical_sae.training.baselines.scores import BaselineScores, macro_f1
from lexical_sae.training.baselines.tfidf import tfidf_baseline
from tests import tiny
from tests.tiny import BAD, GOOD


@pytest.fixture
def encoder(tmp_path):
    return tiny.saved_encoder(tmp_path / "encoder")


@pytest.fixture
def csv(tmp_path):
    rows = [
        f"{text} {i},{label}" for i in range(20) for texts, label in ((GOOD, "pos"), (BAD, "neg")) for text in texts
    ]
    path = tmp_path / "reviews.csv"
    path.write_text("\n".join(["text,label", *rows]) + "\n")
    return path


def test_tfidf_learns_what_words_can_tell_and_keeps_every_answer(csv):
    dataset = load_text_dataset(str(csv))
    steps = []
    scores = tfidf_baseline(dataset, steps.append)
    assert scores.accuracy == 1.0
    assert [step.done for step in steps] == [0, 1, 2, 3]
    assert len(scores.is_correct) == len(dataset.test)
    assert scores.setting in scores.validation


def test_the_dense_baseline_chooses_its_rate_on_validation(encoder, csv):
    dataset = load_text_dataset(str(csv))
    steps = []
    asked = DenseTraining(4, 8, 16, rates=(1e-9, 2e-3), device="cpu", on_step=steps.append)
    scores = dense_baseline(dataset, str(encoder), asked)
    assert steps[-1].total == steps[-1].done == len(dataset.test)
    assert scores.validation["lr=0.002"] > scores.validation["lr=1e-09"]
    assert scores.setting == "lr=0.002"
    assert scores.accuracy > 0.9


def test_baselines_choose_on_validation_texts_and_are_tested_on_others(encoder, csv):
    dataset = load_text_dataset(str(csv))
    # Whoever looked at the test labels while choosing would see nothing but errors.
    turned = TextSplit(dataset.test.texts, tuple(1 - label for label in dataset.test.labels))
    dataset = replace(dataset, test=turned)
    asked = DenseTraining(4, 8, 16, rates=(2e-3,), device="cpu")
    for scores in (tfidf_baseline(dataset), dense_baseline(dataset, str(encoder), asked)):
        assert min(scores.validation.values()) > 0.9
        assert scores.accuracy < 0.1


def test_the_dense_baseline_is_the_encoder_with_a_classification_layer(encoder):
    model = DenseClassifier(str(encoder), 3).eval()
    ids, mask = tiny.batch()
    with torch.no_grad():
        logits = model(ids, mask)
        longer = torch.nn.functional.pad(ids, (0, 3)), torch.nn.functional.pad(mask, (0, 3))
        assert torch.allclose(model(*longer), logits, atol=1e-5)
    assert logits.shape == (4, 3)


@pytest.fixture
def settings(encoder, csv, tmp_path):
    return {
        "output_dir": str(tmp_path / "run"),
        "data": {"dataset_name": str(csv)},
        "model": {"name": str(encoder), "max_length": 16},
        "training": {"max_epochs": 1},
        "evaluation": {"names_texts": 0},
    }


def test_baselines_are_compared_with_the_model_text_by_text(settings, tmp_path):
    config = build_config(settings)
    assert "difference" not in run_baselines(config, "cpu", dense_rates=())
    (tmp_path / "run" / "baselines.json").unlink()
    results = run_experiment(config, device="cpu")
    found = run_baselines(config, "cpu", dense_rates=())
    assert found == json.loads((tmp_path / "run" / "baselines.json").read_text()) | {"baselines": found["baselines"]}
    assert found["model"]["accuracy"] == pytest.approx(results["test"]["accuracy"])
    gap = found["model"]["accuracy"] - found["baselines"]["TF-IDF"]["accuracy"]
    difference = found["difference"]["TF-IDF"]
    assert difference["mean"] == pytest.approx(gap)
    assert difference["low"] <= gap <= difference["high"]
    # One seed is no mean.
    assert not any("seed" in row[2] for row in baseline_figures(found)[1])


def test_a_new_model_is_compared_with_baselines_that_are_not_trained_again(settings, csv, tmp_path, monkeypatch):
    config = build_config(settings)
    with pytest.raises(ValueError, match="no .*baselines.json to compare with"):
        compare_again(config, "cpu")
    alone = run_baselines(config, "cpu", dense_rates=())
    with pytest.raises(ValueError, match="not a saved model"):
        compare_again(config, "cpu")
    run_experiment(config, device="cpu")
    both = run_baselines(config, "cpu", dense_rates=())
    path = tmp_path / "run" / "baselines.json"
    path.write_text(json.dumps(alone))
    monkeypatch.setattr(baselines, "tfidf_baseline", lambda *_: pytest.fail("a baseline was trained"))
    found = compare_again(config, "cpu")
    assert found == json.loads(path.read_text())
    assert found["difference"] == both["difference"]
    assert found["model"] == both["model"]
    csv.write_text(csv.read_text().replace("film", "movie"))
    with pytest.raises(ValueError, match="other test texts; measure the baselines again"):
        compare_again(config, "cpu")


@pytest.fixture
def of_two_seeds(settings):
    """Seeds that draw other test texts: 8 of 32, of which they share some."""
    seeds = {"names_texts": 0, "after_training": False, "seeds": [3, 5]}
    return settings | {"data": {**settings["data"], "test_samples": 8}, "evaluation": seeds}


def test_every_seed_has_a_dense_baseline_on_its_own_rows_paired_with_its_own_model(of_two_seeds, tmp_path):
    config = build_config(of_two_seeds)
    digests = [digest(load_data(config, seed).test) for seed in (3, 5)]
    assert len(set(digests)) == 2
    run_experiment(config, device="cpu")
    found = run_baselines(config, "cpu", dense_rates=(1e-9, 2e-3))
    assert found["model"]["seeds"] == [3, 5]
    of_model = [read_decisions(tmp_path / "run" / f"seed-{seed}") for seed in (3, 5)]
    assert found["model"]["accuracy"] == pytest.approx(np.mean([one.is_correct for one in of_model]))
    for name, scores in found["baselines"].items():
        assert [(run["seed"], run["test_digest"]) for run in scores["runs"]] == list(zip((3, 5), digests, strict=True))
        assert scores["accuracy"] == pytest.approx(np.mean([run["accuracy"] for run in scores["runs"]]))
        theirs = [Decisions(run["test_digest"], tuple(run["is_correct"])) for run in scores["runs"]]
        # A text that both seeds are tested on counts once, so the texts must be known by their hashes.
        expected = asdict(paired_difference(of_model, theirs))
        assert found["difference"][name] == {**expected, "seeds": [3, 5]}
    _, rows = baseline_figures(found)
    assert [row[2].startswith("mean of 2 seeds") for row in rows] == [True] * 4
    assert not any("only" in row[2] for row in rows)


def test_a_seed_without_a_model_or_on_other_texts_is_left_out_and_named(of_two_seeds, tmp_path):
    config = build_config(of_two_seeds)
    run_experiment(config, device="cpu")
    shutil.rmtree(tmp_path / "run" / "seed-3" / "model")
    found = run_baselines(config, "cpu", dense_rates=())
    assert (found["model"]["seeds"], found["difference"]["TF-IDF"]["seeds"]) == ([5], [5])
    # A baseline of the first seed alone, as a run that was broken off leaves it.
    both = build_config(of_two_seeds | {"output_dir": str(tmp_path / "other")})
    run_experiment(both, device="cpu")
    found = run_baselines(both, "cpu", dense_rates=())
    found["baselines"]["TF-IDF"]["runs"].pop()
    (tmp_path / "other" / "baselines.json").write_text(json.dumps(found))
    again = compare_again(both, "cpu")
    assert (again["model"]["seeds"], again["difference"]["TF-IDF"]["seeds"]) == ([3, 5], [3])
    assert baseline_figures(again)[1][1][2].partition(", seed 3 only")[1]


def test_a_model_of_other_settings_is_refused_before_anything_is_measured(settings, monkeypatch):
    run_experiment(build_config(settings), device="cpu")
    monkeypatch.setattr(baselines, "tfidf_baseline", lambda *_: pytest.fail("a baseline was fitted"))
    other = build_config({**settings, "model": {**settings["model"], "max_length": 12}})
    with pytest.raises(ValueError, match=r"made with other settings \(model\)"):
        run_baselines(other, "cpu", dense_rates=())


def test_data_whose_labels_changed_since_training_is_refused(settings, csv):
    config = build_config(settings)
    run_experiment(config, device="cpu")
    csv.write_text(csv.read_text().replace(",pos", ",positive"))
    with pytest.raises(ValueError, match="the data changed since training"):
        run_baselines(config, "cpu", dense_rates=())


def test_what_is_finished_is_written_after_every_seed(of_two_seeds, tmp_path, monkeypatch):
    config = build_config(of_two_seeds)

    def broken_off_at_the_second(dataset, _, asked):
        if asked.seed == 5:
            raise KeyboardInterrupt
        return BaselineScores("dense baseline", 1.0, (True,) * len(dataset.test), "lr=0.0001", {})

    monkeypatch.setattr(baselines, "dense_baseline", broken_off_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        run_baselines(config, "cpu")
    saved = read_baselines(tmp_path / "run" / "baselines.json")
    assert [run["seed"] for run in saved["baselines"]["dense baseline"]["runs"]] == [3]


@pytest.mark.parametrize("runs", [[], None, [{"seed": 0}]])
def test_a_file_of_another_version_is_refused_in_words(settings, runs):
    run_experiment(build_config(settings), device="cpu")
    path = Path(settings["output_dir"]) / "baselines.json"
    old = {"test_texts": 32, "baselines": {"TF-IDF": {"accuracy": 0.5, "runs": runs}}}
    path.write_text(json.dumps(old))
    with pytest.raises(ValueError, match="not what this version of `lexical-sae baselines` writes"):
        compare_again(build_config(settings), "cpu")


def test_only_the_first_dense_baseline_tries_several_rates(settings, monkeypatch):
    tried = []

    def dense(dataset, _, asked):
        tried.append((asked.seed, tuple(asked.rates)))
        return BaselineScores("dense baseline", 1.0, (True,) * len(dataset.test), "lr=0.0001", {})

    monkeypatch.setattr(baselines, "dense_baseline", dense)
    run_baselines(build_config({**settings, "evaluation": {"seeds": [3, 5, 7]}}), "cpu", dense_rates=(5e-5, 1e-4, 2e-4))
    assert tried == [(3, (5e-5, 1e-4, 2e-4)), (5, (1e-4,)), (7, (1e-4,))]


def test_the_rates_of_the_dense_baseline_are_those_on_the_command_line(run, settings, tmp_path):
    config = tmp_path / "run.yaml"
    config.write_text(json.dumps(settings))
    code, output, error = run("baselines", "--config", str(config), "--device", "cpu", "--rates", "1e-9,2e-3")
    assert (code, error) == (0, "")
    assert "dense baseline" in output
    tried = json.loads((tmp_path / "run" / "baselines.json").read_text())["baselines"]["dense baseline"]["validation"]
    assert list(tried) == ["lr=1e-09", "lr=0.002"]


@pytest.mark.parametrize("rates", ["nonsense", "", "5e-5,", "5e-5;1e-4", "0", "-1e-4", "2", "nan"])
def test_what_is_no_list_of_rates_is_refused_before_anything_is_trained(run, settings, tmp_path, rates):
    config = tmp_path / "run.yaml"
    config.write_text(json.dumps(settings))
    code, _, error = run("baselines", "--config", str(config), "--rates", rates)
    assert code == 1
    assert f"--rates {rates!r} is no list of learning rates; write them as in --rates 5e-5,1e-4" in error
    assert not (tmp_path / "run").exists()


def test_a_new_model_can_be_compared_from_the_command_line(run, settings, tmp_path):
    config = tmp_path / "run.yaml"
    config.write_text(json.dumps(settings))
    code, _, error = run("baselines", "--config", str(config), "--compare-only")
    assert (code, "to compare with; measure the baselines first" in error) == (1, True)
    run_baselines(build_config(settings), "cpu", dense_rates=())
    run_experiment(build_config(settings), device="cpu")
    code, output, error = run("baselines", "--config", str(config), "--device", "cpu", "--compare-only")
    assert (code, error) == (0, "")
    assert "this model" in output
    assert "difference" in json.loads((tmp_path / "run" / "baselines.json").read_text())


def test_the_previous_dense_baseline_stays_where_only_the_floor_is_measured_again(settings, csv):
    config = build_config(settings)
    both = run_baselines(config, "cpu", dense_rates=(1e-3,))["baselines"]
    floor = run_baselines(config, "cpu", dense_rates=())["baselines"]
    assert floor["dense baseline"] == both["dense baseline"]
    csv.write_text(csv.read_text().replace("film", "movie"))
    assert list(run_baselines(config, "cpu", dense_rates=())["baselines"]) == ["TF-IDF", "frozen encoder"]


def test_a_model_that_may_have_learned_from_the_test_texts_is_not_compared(settings, csv):
    config = build_config(settings)
    run_experiment(config, device="cpu")
    header, *rows = csv.read_text().splitlines()
    csv.write_text("\n".join([header, *rows[::-1], "a new film,pos"]) + "\n")
    for measure in (lambda: run_baselines(config, "cpu", dense_rates=()), lambda: run_names(Run.of(config), texts=4)):
        with pytest.raises(ValueError, match="has changed since the run .* may have learned from its test texts"):
            measure()


def test_tfidf_of_texts_that_share_no_word_counts_those_of_one_and_without_a_word_says_so(csv):
    dataset = load_text_dataset(str(csv))
    # Every test text has one of these words: without any, rounding of the intercept would decide.
    unshared = replace(dataset, train=TextSplit(("good great wonderful", "awful bad boring terrible"), (1, 0)))
    assert tfidf_baseline(unshared).accuracy == 1.0
    with pytest.raises(ValueError, match="none of the 2 training texts has a word of two letters"):
        tfidf_baseline(replace(dataset, train=TextSplit(("1 !", "?"), (1, 0))))


@pytest.mark.parametrize("measure", [run_baselines, compare_again])
def test_baselines_of_several_experiments_are_refused(measure, tmp_path):
    config = build_config({"output_dir": str(tmp_path), "datasets": ["sst2", "imdb"]})
    with pytest.raises(ValueError, match="names several data sets"):
        measure(config, "cpu")
    assert not list(tmp_path.iterdir())


def test_macro_f1_counts_a_rare_class_as_much_as_the_others():
    assert macro_f1(np.array([0, 0, 0, 1]), np.array([0, 0, 0, 0])) == pytest.approx((6 / 7 + 0) / 2)
    assert macro_f1(np.array([0, 1, 2]), np.array([0, 1, 2])) == 1.0


def test_baselines_beside_a_run_are_measured_once_and_again_when_its_rows_change(settings, tmp_path, monkeypatch):
    run = train_run(Run.of(build_config(settings), "cpu"))
    found = baselines.baselines_beside(run)
    assert [*found["baselines"]] == ["TF-IDF", "frozen encoder"]
    assert found["model"]["accuracy"] == run.results["test"]["accuracy"]
    assert 0 <= found["baselines"]["TF-IDF"]["macro_f1"] <= 1
    assert found == json.loads((tmp_path / "run" / "baselines.json").read_text())
    fitted = []
    monkeypatch.setattr(baselines, "run_baselines", lambda *_, **__: fitted.append(1) or found)
    assert baselines.baselines_beside(run)["difference"] == found["difference"]
    assert not fitted
    changed = {**found, "train_digest": "other rows"}
    (tmp_path / "run" / "baselines.json").write_text(json.dumps(changed))
    baselines.baselines_beside(run)
    assert fitted
