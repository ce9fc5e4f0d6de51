import csv
import json
import math
import xml.etree.ElementTree as ElementTree

import pytest
import yaml

from lexical_sae.commands.compare import parse_setting
from lexical_sae.config.load import build_config
from lexical_sae.runs.comparing import sweep
from lexical_sae.runs.comparing.sweep import ACTIVE_WORDS, SHIFTS, plan, run_sweep
from lexical_sae.runs.folder import RESULTS
from lexical_sae.runs.seeds import Watchers
from lexical_sae.training.stopping import Interrupted
from tests.runs.experiments import tiny_settings
from tests.runs.work import YARDSTICKS, Work

WORDS_PER_TOKEN = "model.neighbourhood.words_per_token"


@pytest.fixture
def config(tmp_path):
    return build_config({**settings(tmp_path), "recipe": "neighbours", "training": {"active_target": 40}})


def settings(place):
    return {"experiment_name": "reviews", "output_dir": str(place / "out")}


@pytest.fixture
def work(monkeypatch):
    return Work(monkeypatch)


def rows_of(place) -> list[dict[str, str]]:
    with (place / "frontier.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_each_value_is_trained_and_measured_in_a_folder_of_its_own(config, work, tmp_path):
    notes = []
    frontier = run_sweep(config, ACTIVE_WORDS, (20, 40), device="cpu", watchers=Watchers(on_note=notes.append))
    assert work.done == [
        *("trained words-20", "names of words-20 on 200", "trained words-40", "names of words-40 on 200")
    ]
    assert [note.split(",")[0] for note in notes] == [
        f"point 1 of 2: {ACTIVE_WORDS} 20",
        f"point 2 of 2: {ACTIVE_WORDS} 40",
    ]
    rows = rows_of(tmp_path / "out")
    assert list(rows[0]) == [
        *("key", "value", "active_words", "accuracy", "accuracy_low", "accuracy_high"),
        *("delete", "delete_low", "delete_high", "follow", "follow_low", "follow_high"),
        *(
            "function_words",
            "lexical_neighbours",
            "presence",
            "presence_shuffled",
            *("context_free", "leakage", "shifts", "negated_positive", "negated_negative", "independence"),
            "circuit",
            "random_circuit",
            "seconds",
            "peak_megabytes",
            "texts",
            "folder",
        ),
    ]
    assert list(rows[1].values()) == [
        *(ACTIVE_WORDS, "40", "39.0", "0.8", "", "", "0.9", "", "", "0.7", "", "", "", "0.6"),
        *("0.88", "0.5", "0.75", "0.1", "7.5", "", "", "0.6", "0.9", "0.4", "30.0", "0", "50", "words-40"),
    ]
    assert [point.active_words for point in frontier.points] == [19, 39]
    ElementTree.parse(tmp_path / "out" / "frontier.svg")


def test_several_seeds_give_mean_interval_and_the_time_of_all(config, work):
    seeds = config.model_copy(update={"evaluation": config.evaluation.model_copy(update={"seeds": (1, 2, 3)})})
    (point,) = run_sweep(seeds, ACTIVE_WORDS, (20,), device="cpu").points
    assert work.done[0] == "trained words-20"
    assert point.accuracy == pytest.approx(0.81)
    # Student's t for two degrees of freedom, times 0.01 / sqrt(3).
    assert (point.accuracy_low, point.accuracy_high) == pytest.approx((0.81 - 0.02484, 0.81 + 0.02484), abs=1e-4)
    assert work.done[1:] == [f"names of seed-{seed} on 200" for seed in (1, 2, 3)]
    # The deletion test is passed by 0.90, 0.92 and 0.94.
    assert (point.delete, point.delete_low, point.delete_high) == pytest.approx((0.92, 0.8703, 0.9697), abs=1e-4)
    assert point.seconds == 90


def test_an_interrupted_sweep_goes_on_where_it_stopped(config, work, tmp_path):
    work.interrupt_at = "words-40"
    with pytest.raises(Interrupted):
        run_sweep(config, ACTIVE_WORDS, (20, 40, 60), device="cpu")
    assert [row["value"] for row in rows_of(tmp_path / "out")] == ["20"], "what is finished is already drawn"
    work.interrupt_at, work.done = None, []
    with pytest.raises(ValueError, match="words-20 is there already; continue with --resume, or choose another folder"):
        run_sweep(config, ACTIVE_WORDS, (20, 40, 60), device="cpu")
    run_sweep(config, ACTIVE_WORDS, (20, 40, 60), device="cpu", resume=True)
    assert [one for one in work.done if "names" not in one] == ["resumed words-40", "trained words-60"]
    assert "names of words-20 on 200" not in work.done
    assert [row["value"] for row in rows_of(tmp_path / "out")] == ["20", "40", "60"]


def test_values_added_on_resume_stand_beside_the_earlier_points_in_order(config, work, tmp_path):
    place = tmp_path / "out"
    run_sweep(config, ACTIVE_WORDS, (40, 20), device="cpu")
    assert [row["value"] for row in rows_of(place)] == ["20", "40"], "trained as given, shown in order"
    before, work.done = rows_of(place), []
    for other in ("words-list", "words-020", "words-nan", f"{WORDS_PER_TOKEN}-8"):
        (place / other).mkdir()
        (place / other / RESULTS).write_text("{}")
    frontier = run_sweep(config, ACTIVE_WORDS, (30,), device="cpu", resume=True)
    assert [one for one in work.done if "names" not in one] == ["trained words-30"]
    assert [point.value for point in frontier.points] == [20, 30, 40]
    first, added, last = rows_of(place)
    assert (added["value"], [first, last]) == ("30", before)
    assert all(f">{value}</text>" in (place / "frontier.svg").read_text() for value in (20, 30, 40))


def test_an_addition_that_is_interrupted_leaves_the_earlier_points_drawn(config, work, tmp_path):
    run_sweep(config, ACTIVE_WORDS, (20, 40), device="cpu")
    work.interrupt_at = "words-10"
    with pytest.raises(Interrupted):
        run_sweep(config, ACTIVE_WORDS, (10,), device="cpu", resume=True)
    assert [row["value"] for row in rows_of(tmp_path / "out")] == ["20", "40"]


def test_points_that_are_fractions_are_kept_too(config, work, tmp_path):
    for value, resume in ((0.5, False), (1e-05, True), (2, True)):
        run_sweep(config, "training.head_rate", (value,), device="cpu", resume=resume)
    assert [row["value"] for row in rows_of(tmp_path / "out")] == ["1e-05", "0.5", "2"]
    assert len(work.done) == 6, "each trained and named once"


@pytest.mark.parametrize("resume", [True, False])
def test_another_key_than_the_folder_was_swept_with_is_refused(config, work, tmp_path, resume):
    run_sweep(config, ACTIVE_WORDS, (20,), device="cpu")
    before, work.done = rows_of(tmp_path / "out"), []
    message = rf"frontier\.csv is of a sweep over {ACTIVE_WORDS}, not over {WORDS_PER_TOKEN}; choose another folder"
    with pytest.raises(ValueError, match=message):
        run_sweep(config, WORDS_PER_TOKEN, (8,), device="cpu", resume=resume)
    assert (work.done, rows_of(tmp_path / "out")) == ([], before)


def test_names_are_measured_again_only_on_more_texts(config, work):
    for texts in (10, 10, 20, 10, 60, 80):
        run_sweep(config, ACTIVE_WORDS, (20,), names_texts=texts, device="cpu", resume="trained words-20" in work.done)
    # There are 50 test texts: 60 and 80 are the same.
    assert work.done[1:] == [f"names of words-20 on {texts}" for texts in (10, 20, 60)]


def test_names_left_by_a_run_that_is_gone_are_not_believed(config, work, tmp_path):
    run_sweep(config, ACTIVE_WORDS, (20,), device="cpu")
    (tmp_path / "out" / "words-20" / RESULTS).unlink()
    run_sweep(config, ACTIVE_WORDS, (20,), device="cpu", resume=True)
    assert work.done[2:] == ["resumed words-20", "names of words-20 on 200"]


def test_measuring_stops_when_somebody_asks(config, work):
    asked = []
    watchers = Watchers(on_step=lambda step: asked.append(step.task), is_interrupted=lambda: "names" in asked)
    with pytest.raises(Interrupted, match="stopped while measuring the names of words-20"):
        run_sweep(config, ACTIVE_WORDS, (20,), device="cpu", watchers=watchers)
    assert work.done == ["trained words-20"]


def test_to_resume_what_was_never_begun_is_refused(config, work):
    with pytest.raises(ValueError, match="no sweep to resume"):
        run_sweep(config, ACTIVE_WORDS, (20,), device="cpu", resume=True)
    assert work.done == []


def test_a_frontier_of_other_values_is_not_overwritten_unasked(config, work):
    run_sweep(config, ACTIVE_WORDS, (20,), device="cpu")
    with pytest.raises(ValueError, match=r"frontier\.csv is there already"):
        run_sweep(config, ACTIVE_WORDS, (30,), device="cpu")
    assert "trained words-30" not in work.done


def test_yardsticks_in_the_folder_are_shown_when_on_the_same_texts(config, work, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "baselines.json").write_text(json.dumps(YARDSTICKS))
    assert run_sweep(config, ACTIVE_WORDS, (20,), device="cpu").baselines == {"TF-IDF": 0.2, "dense baseline": 0.6}
    assert "dense baseline" in (tmp_path / "out" / "frontier.svg").read_text()
    # As many, but others.
    (tmp_path / "out" / "baselines.json").write_text(json.dumps({**YARDSTICKS, "test_digest": "others"}))
    notes = []
    again = run_sweep(config, ACTIVE_WORDS, (20,), device="cpu", resume=True, watchers=Watchers(on_note=notes.append))
    assert again.baselines == {}
    assert "other test texts" in notes[-1]
    assert "baselines" not in work.done


def test_yardsticks_and_runs_that_did_not_keep_their_texts_are_held_to_their_number(config, work, tmp_path):
    place = tmp_path / "out"
    run_sweep(config, ACTIVE_WORDS, (20,), device="cpu")
    old = {key: value for key, value in YARDSTICKS.items() if key != "test_digest"}
    for saved, is_shown in ((old, True), ({**old, "test_texts": 51}, False)):
        (place / "baselines.json").write_text(json.dumps(saved))
        assert bool(run_sweep(config, ACTIVE_WORDS, (20,), device="cpu", resume=True).baselines) == is_shown
    (place / "words-20" / "decisions.json").unlink()
    for texts in (50, 51):
        (place / "baselines.json").write_text(json.dumps({**YARDSTICKS, "test_texts": texts}))
        found = run_sweep(config, ACTIVE_WORDS, (20,), device="cpu", resume=True)
        assert bool(found.baselines) == (texts == 50)
    assert "baselines" not in work.done


def test_one_point_on_other_texts_hides_the_yardsticks_for_good(config, work, tmp_path):
    place = tmp_path / "out"
    run_sweep(config, ACTIVE_WORDS, (20, 40), device="cpu")
    own = place / "words-20" / "decisions.json"
    own.write_text(json.dumps({**json.loads(own.read_text()), "test_digest": "others"}))
    (place / "baselines.json").write_text(json.dumps(YARDSTICKS))
    assert run_sweep(config, ACTIVE_WORDS, (20, 40), device="cpu", resume=True).baselines == {}
    assert "baselines" not in work.done


def test_yardsticks_are_trained_on_request_and_on_resume_only_if_missing(config, work, tmp_path):
    run_sweep(config, ACTIVE_WORDS, (20,), device="cpu", with_baselines=True)
    assert work.done[0] == "baselines"
    run_sweep(config, ACTIVE_WORDS, (20,), device="cpu", with_baselines=True, resume=True)
    assert work.done.count("baselines") == 1
    short = {**YARDSTICKS, "baselines": {"TF-IDF": YARDSTICKS["baselines"]["TF-IDF"]}}
    (tmp_path / "out" / "baselines.json").write_text(json.dumps(short))
    run_sweep(config, ACTIVE_WORDS, (20,), device="cpu", with_baselines=True, resume=True)
    assert work.done.count("baselines") == 2


def test_several_experiments_are_refused_before_a_yardstick_is_trained(config, work):
    several = config.model_copy(update={"datasets": ("sst2", "imdb")})
    with pytest.raises(ValueError, match="names several data sets"):
        run_sweep(several, ACTIVE_WORDS, (20,), device="cpu", with_baselines=True)
    assert work.done == []


@pytest.mark.parametrize("damaged", ["{", "[]", '{"baselines": 3}', '{"baselines": {"TF-IDF": {}}, "test_texts": 5}'])
def test_damaged_yardsticks_are_refused_before_training(config, work, tmp_path, damaged):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "baselines.json").write_text(damaged)
    with pytest.raises(ValueError, match=r"baselines\.json is not what this version of `lexical-sae baselines` writes"):
        run_sweep(config, ACTIVE_WORDS, (20,), device="cpu")
    assert work.done == []


def test_shifts_go_from_a_table_to_no_limit_and_can_be_extended(work, tmp_path):
    config = build_config(settings(tmp_path))
    none, two, unlimited = (point.config for point in plan(config, SHIFTS, (0, 2, math.inf)))
    assert none.model == config.model.model_copy(update={"context": None})
    assert two.training == config.training.model_copy(update={"active_target": 2})
    assert (unlimited.training.count, unlimited.model) == (None, config.model)
    run_sweep(config, SHIFTS, (0, math.inf), device="cpu")
    run_sweep(config, SHIFTS, (2,), device="cpu", resume=True)
    trained = [one for one in work.done if "names" not in one]
    assert trained == ["trained shifts-0", "trained shifts-unlimited", "trained shifts-2"]
    assert [row["value"] for row in rows_of(tmp_path / "out")] == ["0", "2", "unlimited"]
    picture = (tmp_path / "out" / "frontier.svg").read_text()
    assert "context shifts per text</text>" in picture
    assert "allowed shifts unlimited: 7.5 context shifts" in picture


def test_what_a_recipe_has_none_of_is_not_swept(config, tmp_path):
    with pytest.raises(ValueError, match="recipe neighbours has no table of words.*--active-words"):
        plan(config, SHIFTS, (0, 1))
    with pytest.raises(ValueError, match="of recipe anchored are those of the text.*--shifts"):
        plan(build_config(settings(tmp_path)), ACTIVE_WORDS, (20, 40))


def test_any_numeric_key_can_be_swept_and_names_its_points(config):
    points = plan(config, WORDS_PER_TOKEN, (8, 32))
    assert [point.config.model.neighbourhood.words_per_token for point in points] == [8, 32]
    assert [point.folder.name for point in points] == [f"{WORDS_PER_TOKEN}-8", f"{WORDS_PER_TOKEN}-32"]
    before, after = (one.model_dump(exclude={"output_dir", "experiment_name"}) for one in (config, points[1].config))
    after["model"]["neighbourhood"]["words_per_token"] = before["model"]["neighbourhood"]["words_per_token"]
    assert after == before, "nothing else changes"


@pytest.mark.parametrize(
    ("key", "values", "message"),
    [
        ("training.active_taget", (20,), "training.active_taget is unknown; did you mean 'active_target'"),
        ("trainig.active_target", (20,), "trainig is unknown; did you mean 'training'"),
        ("training.active_target.deep", (20,), "training.active_target.deep is unknown: there is no 'deep' in 40"),
        ("training.objective.terms.9.weight", (1,), "is unknown: there is no '9' in"),
        (ACTIVE_WORDS, (20, -5), "training.active_target is -5: Input should be greater than 0"),
        (WORDS_PER_TOKEN, (8, 1.5), "words_per_token is 1.5: Input should be a valid integer"),
        ("recipe", (1,), "recipe 1 is unknown"),
        ("output_dir", (1,), "output_dir is 1: Input should be a valid string"),
        ("evaluation.seeds", (1, 2), "evaluation.seeds is 1"),
        (ACTIVE_WORDS, (), "there are no values for training.active_target"),
        (ACTIVE_WORDS, (20, 40, 20), "training.active_target is to be 20 twice"),
    ],
)
def test_what_the_settings_do_not_allow_is_refused_before_training(config, work, key, values, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is looked at below
        run_sweep(config, key, values, device="cpu")
    assert message in str(error.value)
    assert work.done == []


@pytest.mark.parametrize("recipe", ["cis", "transcoder", "cajt"])
def test_a_target_that_changes_nothing_is_refused(recipe):
    with pytest.raises(ValueError, match=f"changes nothing in this experiment .recipe {recipe}."):
        plan(build_config({"recipe": recipe, "training": {"calibrated_start": None}}), ACTIVE_WORDS, (20, 40))


@pytest.mark.parametrize(
    "training",
    [
        {"count": {}},
        {"calibrated_start": 2.0},
        {"controller": {"kind": "geco", "sparsity_aware": True}},
        {"objective": {"terms": [{"kind": "active_count"}]}},
    ],
    ids=["count", "calibrated_start", "controller", "term"],
)
def test_a_target_that_something_aims_at_is_swept(training):
    assert (
        len(
            plan(
                build_config({"recipe": "cis", "training": {"calibrated_start": None, **training}}),
                ACTIVE_WORDS,
                (20, 40),
            )
        )
        == 2
    )


def test_numbers_are_read_as_people_write_them():
    assert parse_setting("a.b=8, 16,1e2,0.5") == ("a.b", (8, 16, 100, 0.5))
    assert parse_setting("a.b= ") == ("a.b", ())
    assert parse_setting(f"{SHIFTS}=0,1,unlimited") == (SHIFTS, (0, 1, math.inf))
    assert [type(value) for value in parse_setting("a=20.0,2.5")[1]] == [int, float]


@pytest.mark.parametrize("text", ["a.b", "=8", "a..b=8", ".a=8", ""])
def test_what_is_no_setting_is_refused(text):
    with pytest.raises(ValueError, match="is not KEY=NUMBERS, such as"):
        parse_setting(text)


@pytest.mark.parametrize(
    ("values", "odd"),
    [("20,many", "many"), ("20,,40", "''"), ("nan", "nan"), ("1,inf", "inf"), ("1,unlimited", "unlimited")],
)
def test_what_is_no_number_is_refused(values, odd):
    with pytest.raises(ValueError, match=f"a.b: .*{odd}.* is not a"):
        parse_setting(f"a.b={values}")


@pytest.fixture
def experiment(tmp_path):
    """An experiment of a few steps on a tiny encoder."""
    settings = {"experiment_name": "tiny", **tiny_settings(tmp_path), "evaluation": {"after_training": False}}
    settings["training"]["max_epochs"] = 1
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump({**settings, "recipe": "neighbours"}))
    return tmp_path / "tiny.yaml"


def test_the_command_trains_draws_and_can_be_extended(run, experiment, tmp_path):
    out = tmp_path / "a sweep"
    command = ["sweep", "--config", str(experiment), "--out", str(out), "--names-texts", "4", "--active-words"]
    code, output, error = run(*command, "3")
    assert (code, error) == (0, "")
    assert "point 1 of 1" in output
    first = (out / "words-3" / RESULTS).read_bytes()
    code, output, error = run(*command, "3,6", "--resume")
    assert (code, error) == (0, "")
    for expected in ("point 2 of 2", "seed 0 is finished", "Frontier of tiny", "frontier.svg"):
        assert expected in output
    assert (out / "words-3" / RESULTS).read_bytes() == first
    rows = rows_of(out)
    assert [row["folder"] for row in rows] == ["words-3", "words-6"]
    for row in rows:
        test = json.loads((out / row["folder"] / RESULTS).read_text())["test"]
        names = json.loads((out / row["folder"] / "names.json").read_text())["model"]
        assert float(row["accuracy"]) == test["accuracy"]
        assert float(row["active_words"]) == test["active_words"]
        assert float(row["delete"]) == names["delete"]["passed"]["share"]
        assert float(row["lexical_neighbours"]) == names["lexical_neighbours"]["share"]
    assert float(rows[0]["active_words"]) < float(rows[1]["active_words"]), "the target is what was swept"
    ElementTree.parse(out / "frontier.svg")


def test_errors_of_the_command_are_sentences(run, experiment):
    for arguments, message in [
        ((), "say what to sweep"),
        (("--active-words", "20", "--set", "a=1"), "say what to sweep"),
        (("--active-words", "20", "--shifts", "1"), "say what to sweep"),
        (("--shifts", "1"), "recipe neighbours has no table of words"),
        (("--active-words", ""), "there are no values for training.active_target"),
        (("--active-words", "few"), "'few' is not a number"),
        (("--set", "training.pace=1"), "training.pace is unknown"),
    ]:
        code, _, error = run("sweep", "--config", str(experiment), *arguments)
        assert code == 1
        assert message in error


def test_ctrl_c_ends_with_what_to_do_next(run, experiment, monkeypatch):
    def stop(*_, **__):
        raise Interrupted("stopped after step 3")

    monkeypatch.setattr(sweep, "run_sweep", stop)
    code, _, error = run("sweep", "--config", str(experiment), "--active-words", "20")
    assert code == 130
    assert "stopped after step 3; finished points are kept; continue with the same command and --resume" in error
