import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from lexical_sae.config.load import build_config
from lexical_sae.data import TextSplit
from lexical_sae.data.splits import draw
from lexical_sae.runs import Run, load_data, run_experiment
from lexical_sae.runs import run as run_module
from lexical_sae.runs.inputs import digest
from lexical_sae.runs.measuring import evaluating
from lexical_sae.runs.measuring import name_tests as naming
from lexical_sae.runs.measuring.evaluating import evaluate_run
from lexical_sae.runs.measuring.paired import read_decisions
from lexical_sae.runs.seeds import Watchers
from lexical_sae.training.loop import Trainer
from lexical_sae.training.stopping import Interrupted
from lexical_sae.utils.progress import Step
from tests.runs.experiments import tiny_settings


def evaluated(run):
    """The evaluation of each seed."""
    return [evaluate_run(one) for one in run.seeds]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run without its evaluation, and its settings."""
    place = tmp_path_factory.mktemp("trained")
    settings = {**tiny_settings(place), "output_dir": str(place / "run")}
    settings |= {"evaluation": {"texts": 6, "names_texts": 0, "after_training": False}}
    settings["training"]["max_epochs"] = 1
    config = build_config(settings)
    run_experiment(config, device="cpu")
    return with_evaluation(config, after_training=True)


@pytest.fixture
def config(trained, tmp_path):
    """The settings of a run of one's own, which is not there yet."""
    return trained.model_copy(update={"output_dir": str(tmp_path / "run")})


@pytest.fixture
def finished(trained, config, tmp_path):
    """The settings of a run that is trained and not evaluated."""
    shutil.copytree(trained.output_dir, tmp_path / "run")
    return config


@pytest.fixture
def measured(monkeypatch):
    """The texts of each evaluation, which is not made."""
    seen = []

    def evaluate(model, split, settings, on_step):
        assert (model.training, on_step.__name__) == (False, "on_step")
        seen.append((settings.seed, len(split)))
        return SimpleNamespace(as_dict=lambda: {"texts": len(split)})

    monkeypatch.setattr(evaluating, "evaluate", evaluate)
    return seen


@pytest.fixture
def named(monkeypatch):
    """The seed and number of texts of each test of names, which is not made; half of it is passed, or a tenth more."""
    seen = []

    def measure(model, texts, _corpus, seed, limit, on_step):
        on_step(Step("reading edited texts", 1, 1))
        is_model = hasattr(model, "gate")
        if is_model:
            seen.append((seed, limit))
        passed = {"passed": {"share": 0.5 + 0.1 * (len(seen) - 1), "low": 0.0, "high": 1.0, "count": 9}}
        found = {"texts": min(limit, len(texts)), "delete": passed}
        return SimpleNamespace(as_dict=lambda: found)

    monkeypatch.setattr(naming, "measure_names", measure)
    return seen


def with_evaluation(config, **changes):
    return config.model_copy(update={"evaluation": config.evaluation.model_copy(update=changes)})


def read(path):
    return json.loads(path.read_text())


def test_the_evaluation_is_that_of_the_saved_model_on_the_test_texts(finished, tmp_path):
    found = evaluated(Run.of(with_evaluation(finished, texts=0), "cpu"))[0]
    assert found["split"] == "test"
    assert found["data"] == finished.data.dataset_name
    assert found["verification"]["texts_beyond_tolerance"] == 0
    test = read(tmp_path / "run" / "results.json")["test"]
    assert found["texts"] == test["texts"] > 6
    assert found["performance"]["accuracy"]["mean"] == pytest.approx(test["accuracy"])
    assert found["performance"]["active_words"]["mean"] == pytest.approx(test["active_words"])
    assert read(tmp_path / "run" / "evaluation.json")["performance"]["accuracy"]["mean"] == pytest.approx(
        test["accuracy"]
    )


@pytest.mark.parametrize("texts", [0, 3])
def test_the_settings_of_an_evaluation_reach_it(finished, monkeypatch, texts):
    asked = []

    def evaluate(_model, split, settings, _on_step):
        asked.append((settings.explainer_texts, settings.circuit_fraction, settings.seed))
        return SimpleNamespace(as_dict=lambda: {"texts": len(split)})

    monkeypatch.setattr(evaluating, "evaluate", evaluate)
    config = with_evaluation(finished, explainer_texts=texts)
    mechanistic = config.mechanistic.model_copy(update={"circuit_fraction": 0.25})
    evaluated(Run.of(config.model_copy(update={"mechanistic": mechanistic}), "cpu"))
    assert asked == [(texts, 0.25, 0)]


def test_autoencoders_are_compared_where_they_are_asked_for_and_once(finished, measured, monkeypatch, tmp_path):
    asked = []

    def compare(_model, dataset, settings, *, on_step):
        del on_step
        asked.append((len(dataset.test), settings.seed))
        return {"codes": []}

    def write(found, place):
        (place / "sae.json").write_text(json.dumps(found))

    monkeypatch.setattr(evaluating, "compare_with_saes", compare)
    monkeypatch.setattr(evaluating, "write_comparison", write)
    evaluated(Run.of(finished, "cpu"))
    assert asked == []
    wanted = finished.mechanistic.model_copy(update={"sae_comparison": True})
    config = finished.model_copy(update={"mechanistic": wanted})
    for _ in range(2):
        evaluated(Run.of(config, "cpu"))
        assert asked == [(len(load_data(finished, 0).test), 0)]
    assert (tmp_path / "run" / "sae.json").is_file()
    assert len(measured) == 1, "the evaluation itself is not made again"


def test_every_seed_is_evaluated_after_training_on_its_own_test_texts(config, measured, tmp_path):
    run_experiment(with_evaluation(config, seeds=(3, 4), texts=2), device="cpu")
    assert measured == [(3, 2), (4, 2)]
    assert all(read(tmp_path / "run" / f"seed-{seed}" / "evaluation.json")["texts"] == 2 for seed in (3, 4))


def test_it_can_be_switched_off(finished, measured, named):
    run_experiment(with_evaluation(finished, names_texts=4, after_training=False), resume=True, device="cpu")
    assert (measured, named) == ([], [])


@pytest.mark.usefixtures("measured")
def test_names_of_every_seed_are_tried_after_training_and_averaged(config, named, tmp_path):
    results = run_experiment(with_evaluation(config, seeds=(3, 4), texts=2, names_texts=5), device="cpu")
    assert named == [(3, 5), (4, 5)]
    shares = [read(tmp_path / "run" / f"seed-{seed}" / "names.json")["model"]["delete"] for seed in (3, 4)]
    assert [share["passed"]["share"] for share in shares] == [0.5, 0.6]
    assert read(tmp_path / "run" / "results.json")["measured"] == results["measured"]
    over_seeds = results["measured"]["names"]["model"]["delete"]["passed"]
    # Student's t for one degree of freedom, 12.7, times 0.05.
    assert (over_seeds["mean"], over_seeds["low"]) == pytest.approx((0.55, 0.55 - 0.6353), abs=1e-4)
    assert over_seeds["count"] == 2
    assert results["measured"]["evaluation"]["texts"] == 2


def test_a_run_stopped_at_its_names_resumes_there(finished, measured, named, tmp_path):
    config = with_evaluation(finished, names_texts=4)
    seen = []
    watchers = Watchers(lambda step: seen.append(step.task), is_interrupted=lambda: "reading edited texts" in seen)
    with pytest.raises(Interrupted, match="stopped while measuring the names of run; the training is complete"):
        run_experiment(config, resume=True, device="cpu", watchers=watchers)
    assert (tmp_path / "run" / "evaluation.json").is_file()
    assert not (tmp_path / "run" / "names.json").exists()
    named.clear()
    for _ in range(2):
        run_experiment(config, resume=True, device="cpu")
        assert (measured, named) == ([(0, 6)], [(0, 4)]), "what is measured is not measured again"


@pytest.mark.usefixtures("measured")
def test_names_that_were_tried_on_more_texts_stay(finished, named, tmp_path):
    naming.run_names(Run.of(finished, "cpu"), texts=8, words=1)
    before = read(tmp_path / "run" / "names.json")
    assert set(before["strongest_words"]) == {"0", "1"}
    run_experiment(with_evaluation(finished, names_texts=4), resume=True, device="cpu")
    assert read(tmp_path / "run" / "names.json") == before
    run_experiment(with_evaluation(finished, names_texts=9), resume=True, device="cpu")
    assert named == [(0, 8), (0, 9)]


@pytest.mark.parametrize("written", ["{", "[]", '{"model": {"texts": 3}}', '{"model": {"texts": 3}, "test_texts": 9}'])
def test_damaged_names_and_names_on_fewer_texts_are_measured_anew(tmp_path, written):
    path = tmp_path / "names.json"
    assert Run(tmp_path).names_on(4) is None
    path.write_text(written)
    assert Run(tmp_path).names_on(4) is None
    path.write_text('{"model": {"texts": 3}, "test_texts": 3}')
    assert Run(tmp_path).names_on(4) is not None


def test_a_run_stopped_in_its_evaluation_is_complete_and_resumes_there(config, tmp_path, monkeypatch, measured):
    def stop(_model, _split, _settings, on_step):
        assert (tmp_path / "run" / "results.json").is_file(), "the results are safe before it begins"
        on_step(Step("reading texts", 1, 6))

    seen = []
    watchers = Watchers(lambda step: seen.append(step.task), is_interrupted=lambda: "reading texts" in seen)
    with monkeypatch.context() as patched:
        patched.setattr(evaluating, "evaluate", stop)
        with pytest.raises(Interrupted, match="stopped while evaluating; the training is complete"):
            run_experiment(config, device="cpu", watchers=watchers)
    left = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"results.json", "model", "decisions.json"} <= left
    assert not {"evaluation.json", "checkpoint"} & left
    monkeypatch.setattr(Trainer, "run", lambda _: pytest.fail("it trains again"))
    for _ in range(2):
        run_experiment(config, resume=True, device="cpu")
        assert measured == [(0, 6)], "what is measured is not measured again"


@pytest.mark.usefixtures("measured")
def test_an_evaluation_of_a_model_that_is_gone_is_not_believed(config, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "evaluation.json").write_text(json.dumps({"split": "test", "most_texts": 6}))
    for name in ("sae.json", "names.json"):
        (tmp_path / "run" / name).write_text('{"model": {"texts": 6}, "test_texts": 6}')
    run_experiment(config, device="cpu")
    assert read(tmp_path / "run" / "evaluation.json")["texts"] == 6
    assert not (tmp_path / "run" / "sae.json").exists()
    assert not (tmp_path / "run" / "names.json").exists()


@pytest.mark.parametrize(
    "written", ["{", "[]", '{"texts": 6}', '{"split": "test", "most_texts": 7}', '{"split": "own", "most_texts": 6}']
)
def test_a_file_about_something_else_is_not_taken_for_the_runs(tmp_path, written):
    path = tmp_path / "evaluation.json"
    assert Run(tmp_path).evaluation_on(6) is None
    path.write_text(written)
    assert Run(tmp_path).evaluation_on(6) is None
    path.write_text('{"split": "test", "most_texts": 6}')
    assert Run(tmp_path).evaluation_on(6) is not None


def test_the_decisions_of_a_run_are_those_that_its_scores_count(finished, tmp_path):
    decisions, test = read_decisions(tmp_path / "run"), read(tmp_path / "run" / "results.json")["test"]
    assert decisions.digest == digest(load_data(finished, 0).test)
    assert len(decisions.is_correct) == len(set(decisions.texts)) == test["texts"]
    assert sum(decisions.is_correct) / test["texts"] == test["accuracy"]


def test_missing_or_damaged_decisions_say_what_to_do(tmp_path):
    with pytest.raises(ValueError, match=r"there is no .*decisions\.json, which training writes"):
        read_decisions(tmp_path)
    (tmp_path / "decisions.json").write_text('{"test_digest": "x"}')
    with pytest.raises(ValueError, match="is not what training writes"):
        read_decisions(tmp_path)


def test_a_setting_that_is_younger_than_a_run_had_its_default_there(tmp_path):
    config, deeper = (
        build_config({"recipe": "neighbours", "model": {"head": {"kind": "bcos", "layers": layers}}})
        for layers in (2, 3)
    )
    saved = json.loads(config.model_dump_json())
    del saved["model"]["head"]["layers"]
    (tmp_path / "resolved_config.yaml").write_text(json.dumps(saved))
    Run(tmp_path).require_made_by(config)
    with pytest.raises(ValueError, match=r"other settings \(model\)"):
        Run(tmp_path).require_made_by(deeper)
    (tmp_path / "resolved_config.yaml").write_text("no mapping")
    with pytest.raises(ValueError, match="other settings"):
        Run(tmp_path).require_made_by(config)


def test_texts_are_drawn_by_lot_and_stay_in_order():
    split = TextSplit(tuple(str(i) for i in range(100)), tuple(i % 2 for i in range(100)))
    drawn = draw(split, 10, seed=1)
    numbers = [int(text) for text in drawn.texts]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 10
    assert numbers[-1] > 20, "not the first ones"
    assert list(drawn.labels) == [number % 2 for number in numbers]
    assert draw(split, 10, seed=1) == drawn != draw(split, 10, seed=2)
    assert draw(split, 0, seed=1) is draw(split, 100, seed=1) is split


def test_settings_of_the_measurement_may_change_before_a_resume(finished, measured):
    run_experiment(with_evaluation(finished, texts=3, explainer_texts=2), resume=True, device="cpu")
    assert measured == [(0, 3)]
    with pytest.raises(ValueError, match="holds a run with other settings: evaluation.seeds"):
        run_experiment(with_evaluation(finished, seeds=(9,)), resume=True, device="cpu")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"datasets": ["sst2", "imdb"]}, "names several data sets .sst2, imdb.; run it with `lexical-sae multi-data"),
        ({"variants": {"no gate": {}}}, "names several variants .no gate.; run it with `lexical-sae ablation`"),
    ],
    ids=["datasets", "variants"],
)
def test_several_experiments_are_refused_where_one_is_expected(tmp_path, settings, message):
    config = build_config({"output_dir": str(tmp_path / "run"), **settings})
    with pytest.raises(ValueError, match=message):
        run_experiment(config, device="cpu")
    assert not (tmp_path / "run").exists()


def with_other_rows(config, path):
    """The settings with a copy of the data, which changed since: half of its rows are gone."""
    rows = Path(config.data.dataset_name).read_text().splitlines()
    path.write_text("\n".join([rows[0], *rows[1::2]]) + "\n")
    return config.model_copy(update={"data": config.data.model_copy(update={"dataset_name": str(path)})})


def test_a_model_is_not_evaluated_on_data_that_changed_since_training(finished, measured, tmp_path):
    with pytest.raises(ValueError, match="has changed since the run in .* was made"):
        evaluated(Run.of(with_other_rows(finished, tmp_path / "changed.csv"), "cpu"))
    assert measured == []
    assert not (tmp_path / "run" / "evaluation.json").exists()


def test_a_model_is_not_evaluated_under_labels_that_are_not_its_own(finished, measured, monkeypatch):
    dataset = load_data(finished, 0)
    other = replace(dataset, label_names=tuple(f"not {name}" for name in dataset.label_names))
    monkeypatch.setattr(run_module, "load_data", lambda *_: other)
    with pytest.raises(ValueError, match="the data changed since training"):
        evaluated(Run.of(finished, "cpu"))
    assert measured == []


def test_another_seed_is_not_trained_on_data_that_changed_since_the_first(trained, tmp_path):
    data = tmp_path / "reviews.csv"
    shutil.copy(trained.data.dataset_name, data)
    config = with_evaluation(trained, seeds=(0, 1), after_training=False)
    own = trained.data.model_copy(update={"dataset_name": str(data)})
    config = config.model_copy(update={"data": own, "output_dir": str(tmp_path / "run")})
    run_experiment(config, device="cpu")
    shutil.rmtree(tmp_path / "run" / "seed-1")
    with_other_rows(config, data)
    with pytest.raises(ValueError, match="has changed since the run in .*seed-0 was made"):
        run_experiment(config, resume=True, device="cpu")
    assert not (tmp_path / "run" / "seed-1" / "resolved_config.yaml").exists()
