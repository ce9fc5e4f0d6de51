import json

import pytest

from lexical_sae.runs import load_data
from lexical_sae.runs.comparing import comparison
from lexical_sae.runs.comparing.comparison import run_comparison
from lexical_sae.runs.comparing.variants import load_datasets, load_variants, term_ablations
from lexical_sae.runs.seeds import Watchers
from lexical_sae.training.stopping import Interrupted
from tests.runs.work import YARDSTICKS, Work, baseline_run

MORE = "variants: {less: {training.active_target: 20}, more: {training.active_target: 60}}\n"


@pytest.fixture
def work(monkeypatch):
    return Work(monkeypatch)


@pytest.fixture(autouse=True)
def data_read(monkeypatch) -> list[str]:
    """Names of the data sets that are read before training, those of this package's tests from their files."""
    read = []

    def load(config, seed):
        read.append(config.data.dataset_name)
        return load_data(config, seed) if read[-1].endswith(".csv") else None

    monkeypatch.setattr(comparison, "load_data", load)
    return read


@pytest.fixture
def study(tmp_path):
    def load(text=MORE, seeds="[0]"):
        path = tmp_path / "films.yaml"
        path.write_text(
            f"experiment_name: films\noutput_dir: '{tmp_path / 'out'}'\ntraining: {{active_target: 40}}\n"
            f"evaluation: {{seeds: {seeds}}}\n" + text
        )
        return load_datasets(path) if "datasets" in text else load_variants(path, term_ablations, kind="ablation")

    return load


def results_of(tmp_path):
    return json.loads((tmp_path / "out" / "results.json").read_text())


def test_each_experiment_is_measured_and_paired_with_the_first(study, work, tmp_path):
    notes = []
    found = run_comparison(study(), "parts", device="cpu", watchers=Watchers(on_note=notes.append))
    assert [one for one in work.done if "names" not in one] == ["trained base", "trained less", "trained more"]
    assert [note.split(",")[0] for note in notes] == [
        f"experiment {i} of 3: {name}" for i, name in enumerate(("base", "less", "more"), start=1)
    ]
    base, less, more = found.runs
    # With a target of 40, 20 and 60 words the first 20, 10 and 30 of 50 texts are right.
    assert base.difference is None
    assert (less.difference.mean, less.difference.won, less.difference.lost) == (-0.2, 0, 10)
    assert (more.difference.mean, more.difference.won, more.difference.lost) == (pytest.approx(0.2), 10, 0)
    assert more.difference.p == pytest.approx(2 * 0.5**10)
    assert more.difference.p_of_all == pytest.approx(2 * more.difference.p)
    assert (more.figures.circuit, more.figures.random_circuit) == (0.9, 0.4)
    assert (more.figures.active_words, more.figures.delete, more.figures.folder) == (59, 0.9, "more")
    saved = results_of(tmp_path)
    assert [run["name"] for run in saved["runs"]] == ["base", "less", "more"]
    assert saved["runs"][2]["changes"] == {"training.active_target": 60}
    assert saved["runs"][1]["difference"]["mean"] == -0.2
    page = (tmp_path / "out" / "report.html").read_text()
    assert "-20.0%" in page
    assert "films: parts" in page


def test_several_seeds_are_paired_seed_by_seed(study, work):
    found = run_comparison(study(seeds="[1, 2]"), "parts", device="cpu")
    # Run i gets i texts more right in every experiment, so text 30 of `more` is won in one run of two.
    more = found.runs[2]
    assert found.seeds == 2
    assert more.difference.mean == pytest.approx(0.2)
    assert (more.difference.won, more.difference.lost) == (11, 0)
    assert more.figures.seconds == 60
    assert more.figures.peak_megabytes == 200, "the most of both seeds"
    assert work.done.count("trained more") == 1


def test_an_interrupted_comparison_goes_on_where_it_stopped(study, work, tmp_path):
    work.interrupt_at = "less"
    with pytest.raises(Interrupted):
        run_comparison(study(), "parts", device="cpu")
    assert [run["name"] for run in results_of(tmp_path)["runs"]] == ["base"]
    with pytest.raises(ValueError, match="already holds a run"):
        run_comparison(study(), "parts", device="cpu")
    work.interrupt_at, work.done = None, []
    run_comparison(study(), "parts", device="cpu", resume=True)
    assert [one for one in work.done if "names" not in one] == ["resumed less", "trained more"]
    assert [run["name"] for run in results_of(tmp_path)["runs"]] == ["base", "less", "more"]


def test_experiments_can_be_added_to_a_finished_comparison(study, work, tmp_path):
    run_comparison(study("variants: {less: {training.active_target: 20}}\n"), "parts", device="cpu")
    work.done = []
    run_comparison(study(), "parts", device="cpu", resume=True)
    assert [one for one in work.done if "names" not in one] == ["trained more"]
    assert "more:" in (tmp_path / "out" / "resolved_config.yaml").read_text()


def test_other_settings_are_refused_on_resume(study, work):
    run_comparison(study(), "parts", device="cpu")
    with pytest.raises(ValueError, match="with other settings: .*training.head_rate"):
        run_comparison(study(MORE + "recipe: cis\n"), "parts", device="cpu", resume=True)
    assert "resumed base" not in work.done


def test_the_folder_of_a_run_is_left_alone(study, work, tmp_path):
    (tmp_path / "out" / "model").mkdir(parents=True)
    for resume in (False, True):
        with pytest.raises(ValueError, match="holds the run of one experiment"):
            run_comparison(study(), "parts", device="cpu", resume=resume)
    assert work.done == []


def test_a_comparison_that_fails_before_its_first_run_leaves_no_trace(study, tmp_path, monkeypatch):
    monkeypatch.setattr("lexical_sae.runs.comparing.summary.run_experiment", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run_comparison(study(), "parts", device="cpu")
    assert not (tmp_path / "out" / "resolved_config.yaml").exists()


def test_yardsticks_are_paired_with_the_first_too_and_measured_once(study, work, tmp_path):
    for resume in (False, True):
        found = run_comparison(study(), "parts", device="cpu", with_baselines=True, resume=resume)
    assert work.done.count("baselines") == 1
    tfidf, dense = found.baselines
    assert (tfidf.name, tfidf.accuracy, tfidf.seconds, tfidf.peak_megabytes) == ("TF-IDF", 0.2, 6.0, 70)
    assert tfidf.difference.mean == pytest.approx(-0.2)
    assert dense.difference.mean == pytest.approx(0.2)
    # The four comparisons have the same p, and share it out.
    assert {round(row.difference.p_of_all / row.difference.p, 6) for row in (*found.runs[1:], tfidf, dense)} == {4}
    assert "dense baseline" in (tmp_path / "out" / "report.html").read_text()
    others = {"TF-IDF": {"accuracy": 0.2, "runs": [{**baseline_run(10), "test_digest": "others"}]}}
    others["dense baseline"] = YARDSTICKS["baselines"]["dense baseline"]
    (tmp_path / "out" / "baselines.json").write_text(json.dumps({**YARDSTICKS, "baselines": others}))
    with pytest.raises(ValueError, match="tested on other texts"):
        run_comparison(study(), "parts", device="cpu", with_baselines=True, resume=True)


@pytest.mark.usefixtures("work")
def test_yardsticks_stand_beside_all_seeds(study):
    found = run_comparison(study(seeds="[1, 2]"), "parts", device="cpu", with_baselines=True)
    # The first 20 texts are right in one run and the first 21 in the other, and 30 for the dense baseline.
    dense = found.baselines[1].difference
    assert dense.mean == pytest.approx((10 + 9) / 2 / 50)
    assert (dense.won, dense.lost) == (10, 0)


def test_each_twin_is_paired_with_the_run_of_its_seed(study, work, tmp_path):
    run_comparison(study(seeds="[1, 2]"), "parts", device="cpu", with_baselines=True)
    # Twin and run of a seed are right on the same texts; crosswise they would not be.
    dense_runs = {"dense baseline": {"accuracy": 0.41, "runs": [baseline_run(21, seed=2), baseline_run(20, seed=1)]}}
    (tmp_path / "out" / "baselines.json").write_text(json.dumps({**YARDSTICKS, "baselines": dense_runs}))
    found = run_comparison(study(seeds="[1, 2]"), "parts", device="cpu", with_baselines=True, resume=True)
    assert work.done.count("baselines") == 1
    difference = found.baselines[0].difference
    assert (difference.mean, difference.won, difference.lost) == (0, 0, 0)


@pytest.mark.usefixtures("work")
def test_data_sets_stand_side_by_side_unpaired(study, tmp_path):
    found = run_comparison(study("datasets: [sst2, imdb]\n"), "data sets", device="cpu")
    assert [run.name for run in found.runs] == ["sst2", "imdb"]
    assert [run.difference for run in found.runs] == [None, None]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "test texts" in page
    assert "against sst2" not in page


def reviews(path):
    path.write_text("text,label\n" + "".join(f"film {i},{('good', 'bad')[i % 2]}\n" for i in range(40)))
    return path


def test_data_that_cannot_be_read_is_told_before_anything_is_trained(study, work, tmp_path):
    first, missing = reviews(tmp_path / "a.csv"), tmp_path / "missing.csv"
    several = f"datasets: ['{first}', '{missing}']\n"
    with pytest.raises(FileNotFoundError, match=r"no file or folder .*missing\.csv"):
        run_comparison(study(several), "data sets", device="cpu")
    assert work.done == []
    assert not (tmp_path / "out" / "resolved_config.yaml").exists(), "the same command may be given again"
    missing.write_text("text,label\nonly one,good\n")
    with pytest.raises(ValueError, match=r"missing\.csv"):
        run_comparison(study(several), "data sets", device="cpu")
    reviews(missing)
    found = run_comparison(study(several), "data sets", device="cpu")
    assert [run.name for run in found.runs] == [str(first), str(missing)]


def test_data_is_read_once_beforehand_and_not_for_what_is_finished(study, work, data_read):
    run_comparison(study(), "parts", device="cpu")
    assert len(data_read) == 1, "three variants share it"
    run_comparison(study(), "parts", device="cpu", resume=True)
    assert len(data_read) == 1
    assert [one for one in work.done if "names" not in one] == ["trained base", "trained less", "trained more"]
