import pytest
import typer
import yaml
from rich.console import Console
from typer.testing import CliRunner

from lexical_sae.commands import edit as plant
from lexical_sae.commands import surgery as run_surgery
from lexical_sae.config.load import load_config
from lexical_sae.data import load_text_dataset
from lexical_sae.data.sources.planted import planted_bias
from lexical_sae.intervene import concepts as surgery
from lexical_sae.intervene.concepts import SurgeryPlan
from lexical_sae.report.studies import concept_removal as surgery_study
from lexical_sae.runs import experiment as training

app = typer.Typer()
app.command("plant")(plant.plant)
app.command("surgery")(run_surgery.surgery)


@pytest.fixture
def run(monkeypatch):
    for script in (plant, run_surgery):
        monkeypatch.setattr(script, "console", Console(width=200))
    return lambda *arguments: CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


def test_a_planted_corpus_is_read_back_as_it_was_made(run, tmp_path):
    run("plant", "bias", "--out", tmp_path / "data", "--texts", "60")
    found = load_text_dataset("planted", path=tmp_path / "data")
    made = planted_bias(60).dataset
    assert sorted(found.train.texts) == sorted(made.train.texts)
    assert found.test == made.test
    assert found.validation.identities == made.validation.identities


def test_a_fair_corpus_has_the_groups_beside_both_labels(run, tmp_path):
    run("plant", "fair", "--out", tmp_path, "--texts", "400")
    train = load_text_dataset("planted", path=tmp_path).train
    assert train.identities is not None
    sailors = [label for label, said in zip(train.labels, train.identities["sailor"], strict=True) if said]
    assert 0.4 < sum(sailors) / len(sailors) < 0.6


def test_planted_comments_are_read_as_civilcomments(run, tmp_path, monkeypatch):
    run("plant", "civilcomments", "--out", tmp_path / "civilcomments", "--texts", "60")
    monkeypatch.setenv("LEXICAL_SAE_DATA", str(tmp_path))
    found, made = load_text_dataset("civilcomments"), planted_bias(60).dataset
    assert found.label_names == ("not toxic", "toxic")
    assert found.test.labels == tuple(1 - label for label in made.test.labels)
    assert found.test.identities is not None
    assert len(found.test.identities) == 24
    for text, is_muslim in zip(found.test.texts, found.test.identities["muslim"], strict=True):
        assert ("muslim" in text, "christian" in text) == (is_muslim == 1, is_muslim == 0)


@pytest.fixture
def experiment(run, tmp_path):
    """An experiment file on a planted corpus; its run is not there yet."""
    run("plant", "bias", "--out", tmp_path / "data", "--texts", "60")
    settings = {
        "output_dir": str(tmp_path / "run"),
        "data": {"dataset_name": "planted", "path": str(tmp_path / "data")},
        "surgery": {"concept": "sailor", "positive": ["negative"], "swaps": {"sailor": "farmer"}, "epsilon": 0.25},
    }
    (tmp_path / "experiment.yaml").write_text(yaml.safe_dump(settings))
    return tmp_path / "experiment.yaml"


@pytest.fixture
def asked(monkeypatch):
    """The plans that a study was made of, in a command that trains and studies nothing."""
    plans = []

    def study(_folder, _dataset, plan, *_others):
        plans.append(plan)
        return {}

    monkeypatch.setattr(training, "ensure_trained", lambda run, **_: run)
    monkeypatch.setattr(surgery, "run_surgery", study)
    monkeypatch.setattr(surgery_study, "study_view", lambda _: "the study")
    return plans


def test_what_to_remove_stands_in_the_file(run, experiment, asked):
    assert "the study" in run("surgery", "--config", experiment).stdout
    plan = SurgeryPlan(concept="sailor", positive=("negative",), swaps={"sailor": "farmer"}, epsilon=0.25)
    assert asked == [plan]


def test_options_override_the_file(run, experiment, asked):
    options = ("--concept", "farmer", "--epsilon", "0.5", "--words", "farmer, farm", "--seed", "7")
    run("surgery", "--config", experiment, *options, "--group", "x=y,z", "--swap", "a:b", "--positive", "positive")
    (plan,) = asked
    assert (plan.concept, plan.positive, plan.words) == ("farmer", ("positive",), ("farmer", "farm"))
    assert (plan.epsilon, plan.delta, plan.seed) == (0.5, 0.01, 7)
    assert (plan.group_words, plan.swaps) == ({"x": ("y", "z")}, {"a": "b"})


def test_what_to_remove_is_asked_for_where_neither_file_nor_options_say(run, experiment, asked):
    experiment.write_text(yaml.safe_dump({**yaml.safe_load(experiment.read_text()), "surgery": None}))
    with pytest.raises(ValueError, match="no section `surgery`.*: give --concept and --positive, or write surgery:"):
        run("surgery", "--config", experiment)
    run("surgery", "--config", experiment, "--concept", "sailor", "--positive", "negative")
    assert [plan.epsilon for plan in asked] == [0.05]


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--concept", "sailors", "did you mean 'sailor'"),
        ("--positive", "toxic", "positive label 'toxic' is not a label"),
        ("--positive", " , ", "what to remove is not clear"),
    ],
)
def test_slips_are_told_before_anything_is_trained(run, experiment, monkeypatch, option, value, message):
    monkeypatch.setattr(training, "ensure_trained", lambda *_, **__: pytest.fail("trained"))
    with pytest.raises(ValueError, match=message):
        run("surgery", "--config", experiment, option, value)


def test_data_that_changed_since_training_is_refused(run, experiment, tmp_path):
    (tmp_path / "run" / "model").mkdir(parents=True)
    resolved = load_config(experiment).model_dump(mode="json")
    (tmp_path / "run" / "resolved_config.yaml").write_text(yaml.safe_dump(resolved))
    (tmp_path / "run" / "decisions.json").write_text('{"test_digest": "of other texts", "is_correct": "1"}')
    with pytest.raises(ValueError, match="has changed since the run in .* was made"):
        run("surgery", "--config", experiment)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"concept": "x"}, "surgery.positive is .*Field required"),
        ({"concept": "x", "positive": ["y"], "epsilom": 0.1}, "surgery.epsilom is unknown; did you mean 'epsilon'"),
        ({"concept": "x", "positive": ["y"], "epsilon": 2}, "surgery.epsilon is 2"),
    ],
)
def test_a_section_is_read_strictly(experiment, section, message):
    experiment.write_text(yaml.safe_dump({"surgery": section}))
    with pytest.raises(ValueError, match=message):
        load_config(experiment)


@pytest.mark.parametrize(("option", "value"), [("--swap", "muslim"), ("--group", "muslim="), ("--swap", ":x")])
def test_half_an_option_is_refused(run, tmp_path, option, value):
    config = tmp_path / "experiment.yaml"
    config.write_text("{}\n")
    with pytest.raises(ValueError, match="lacks a side"):
        run("surgery", "--config", config, "--concept", "x", "--positive", "y", option, value)


def test_a_label_may_have_a_comma():
    assert run_surgery._labels("Technical, IT", ["Billing", "Technical, IT"]) == ("Technical, IT",)
    assert run_surgery._labels("Billing, IT", ["Billing", "IT"]) == ("Billing", "IT")


def test_texts_from_elsewhere_need_their_positive_labels(tmp_path):
    path = tmp_path / "templates.csv"
    rows = [f"kill {n},BAD" for n in range(200)] + [f"love {n},NOT_BAD" for n in range(200)]
    path.write_text("Text,Label\n" + "\n".join(rows) + "\n")
    with pytest.raises(ValueError, match="--also-positive BAD"):
        run_surgery._other_texts(path, " , ", 10, 0)
    other = run_surgery._other_texts(path, "BAD", 10, 0)
    assert (other.name, len(other.split), other.positive) == ("templates.csv", 10, (0,))
    # By lot: the first rows of a sorted file have one label only.
    assert set(other.split.labels) == {0, 1}
