import json
import re
import shutil
from pathlib import Path

import pytest

from lexical_sae.commands import tag as command
from lexical_sae.commands import tag as tag_command
from lexical_sae.config.load import build_config
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.lexical_sae import TAG
from lexical_sae.models.persistence import from_pretrained, save_pretrained
from lexical_sae.report.explanation.entities import tagger_figures
from lexical_sae.report.terminal import constraint_rows
from lexical_sae.runs import Run
from lexical_sae.runs.pages.report import write_report
from lexical_sae.runs.seeds import Watchers
from lexical_sae.runs.tagging.experiment import run_dense_tagger, run_ner, setup_and_train_tagger
from lexical_sae.runs.tagging.pages import write_tagging_report
from lexical_sae.training.stopping import Interrupted
from tests import tiny
from tests.data.folders import conll_capitals
from tests.inference.test_tag_explaining import TEXT


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ner")
    tiny.saved_encoder(folder / "encoder")
    conll_capitals(folder)
    return folder


def settings(place, out, **model):
    return build_config(
        {
            "experiment_name": "capitals",
            "recipe": "neighbours",
            "output_dir": str(out),
            "data": {"dataset_name": str(place)},
            "model": {"name": str(place / "encoder"), "max_length": 16, "neighbourhood": None, "shapes": {}, **model},
            "training": {"max_epochs": 3, "batch_size": 16, "active_target": 10, "learning_rate": 1.0e-3},
        }
    )


OLD_PIECE = {"word": "##ual", "kind": "word", "contribution": 0.5, "active": 0.5}


@pytest.fixture(scope="module")
def finished(place):
    config = settings(place, place / "run")
    return config, run_ner(config, device="cpu")


def test_a_capital_that_the_encoder_does_not_see_is_learned_from_shapes(finished):
    config, results = finished
    assert results["test"]["f1"] == 1.0
    assert set(results["test"]["types"]) == {"ORG"}
    assert results["tags"] == ["O", "B-ORG", "I-ORG"]
    assert results["test"]["identity_error"] < 1e-5
    (lexicon,) = results["lexicons"]
    assert lexicon["words"][0]["word"] == "is capitalised"
    run = json.loads((place_of(config) / "results.json").read_text())
    assert run == json.loads(json.dumps(results))


def test_a_tagger_with_a_neighbourhood_names_the_words_that_its_sentences_have_cut(place, tmp_path):
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.txt").write_text((place / f"{split}.txt").read_text().replace("good", "goodly"))
    config = settings(place, tmp_path / "run", neighbourhood={"words_per_token": 4, "most_cut_words": 8})
    config = config.model_copy(update={"data": config.data.model_copy(update={"dataset_name": str(tmp_path)})})
    assert setup_and_train_tagger(config, "cpu").model.config.neighbourhood.cut_words == ("goodly",)


def test_without_shapes_it_cannot_be_learned(place):
    results = run_ner(settings(place, place / "blind", shapes=None), device="cpu")
    assert results["test"]["f1"] < 0.9


def place_of(config):
    return Path(config.output_dir)


def test_the_page_shows_entities_scores_and_reasons(finished):
    config, _ = finished
    page = (place_of(config) / "report.html").read_text()
    assert 'class="entity c0">Bank<small>ORG</small>' in page
    assert "is capitalised" in page
    assert "Why Bank is ORG" in page
    assert "<script" not in page


def test_page_and_summary_say_whether_the_cross_entropy_was_kept(finished):
    config, results = finished
    ((name, value, _),) = constraint_rows(results)
    assert (name, value) in [row[:2] for row in tagger_figures(results)[1]]
    assert f"{name}: <strong>{value}</strong>" in (place_of(config) / "report.html").read_text()


def test_report_shows_scores_by_type_curves_shapes_reasons_and_settings(finished, tmp_path):
    config, results = finished
    written, missing = write_report(Run(place_of(config)), tmp_path / "page.html", texts=4)
    page = written.read_text()
    assert missing == [line for line in missing if "baselines.json" in line]
    assert re.findall(r'<section id="(\w+)">', page) == [
        "faithfulness",
        "training",
        "shapes",
        "settings",
        *(["missing"] if missing else []),
    ]
    assert 'class="entity c0">Bank<small>ORG</small>' in page
    assert page.count("<article>") == 4
    for told in (
        "F1 against active words per position",
        "entity F1, strict",
        "Cross-entropy",
        "experiment_name: capitals",
    ):
        assert told in page
    for name in config.model.shapes.names:
        assert f"<i>{name}</i>" in page
    assert f"{results['test']['words']} words with exactly the right tag" in page
    assert "<script" not in page


def test_a_report_of_several_seeds_gives_their_mean(finished, tmp_path):
    config, results = finished
    shutil.copytree(place_of(config), tmp_path / "seed-0")
    shutil.copy(place_of(config) / "resolved_config.yaml", tmp_path)
    interval = {"mean": 0.9, "low": 0.8, "high": 1.0, "count": 2}
    mean = {"f1": interval, "active_words": interval}
    (tmp_path / "results.json").write_text(json.dumps({"runs": [results, results], "mean": mean}))
    page = write_report(Run(tmp_path), texts=0)[0].read_text()
    assert "Mean of 2 seeds" in page
    assert "80.00% to 100.00%" in page
    assert "<article>" not in page


def test_a_report_without_model_or_data_says_so_and_shows_the_rest(finished, tmp_path):
    config, _ = finished
    shutil.copytree(place_of(config), tmp_path / "run", ignore=shutil.ignore_patterns("model"))
    (tmp_path / "run" / "history.jsonl").unlink()
    written, missing = write_report(Run(tmp_path / "run"))
    page = written.read_text()
    assert any("There are no sentences" in line for line in missing)
    assert any("There is no history.jsonl" in line for line in missing)
    assert "entity F1, strict" in page
    assert "There are no sentences" in page


def test_a_page_that_cannot_be_written_does_not_spoil_the_run(finished, monkeypatch):
    def refuse(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr("lexical_sae.runs.tagging.experiment.write_tagging_report", refuse)
    notes = []
    config, results = finished
    again = run_ner(config, resume=True, device="cpu", watchers=Watchers(on_note=notes.append))
    assert again == json.loads(json.dumps(results))
    assert any("disk full" in note and f"lexical-sae report {config.output_dir}" in note for note in notes)


def test_an_interrupted_run_ends_as_an_uninterrupted_one_does(place, finished):
    _, whole = finished
    config, seen = settings(place, place / "stopped"), []
    stop = Watchers(on_step=seen.append, is_interrupted=lambda: len(seen) == 5)
    with pytest.raises(Interrupted):
        run_ner(config, device="cpu", watchers=stop)
    again = run_ner(config, resume=True, device="cpu")
    assert without_times(again) == without_times(whole)


def without_times(results):
    test = {name: value for name, value in results["test"].items() if name != "seconds"}
    costs = ("seconds", "peak_megabytes")
    return {**{name: value for name, value in results.items() if name not in costs}, "test": test}


def test_the_dense_twin_is_told_of_capitals_too_and_stands_beside_the_model(finished):
    config, results = finished
    longer = config.training.model_copy(update={"max_epochs": 30})
    found = run_dense_tagger(config.model_copy(update={"training": longer}), "cpu", rates=(1e-2,))
    assert found["dense baseline"]["f1"] > 0.95
    assert found["dense baseline"]["seconds"] > 0
    assert {type(one["peak_megabytes"]) for one in (found["dense baseline"], results)} <= {int, type(None)}
    assert found["model"]["f1"] == results["test"]["f1"]
    assert found["difference in sentences that are right"]["count"] == found["test_sentences"] == 24
    page = write_tagging_report(Run(place_of(config)))[0].read_text()
    assert "dense baseline: F1" in page


def test_a_model_of_other_data_is_not_compared_and_nothing_is_trained(finished, tmp_path):
    config, _ = finished
    other = config.model_copy(update={"data": config.data.model_copy(update={"dataset_name": str(tmp_path)})})
    with pytest.raises(ValueError, match=r"other settings \(data\)"):
        run_dense_tagger(other, "cpu", rates=(1e-2,))


def test_a_tagger_is_asked_whether_its_explanations_are_true(finished):
    config, results = finished
    found = json.loads((place_of(config) / "evaluation.json").read_text())
    assert found["sentences"] == results["test"]["sentences"] == 24
    everything, entities = found["all_words"], found["entities"]
    assert everything["words"] == results["test"]["words"]
    assert entities["words"] == results["test"]["types"]["ORG"]["predicted"]
    # Capitals alone make a name: with its words and shapes a word is one, and without them it is not.
    rate = entities["removability"]["removed"][-1]["orders"]
    assert rate["direct"]["mean"] >= rate["random"]["mean"]
    assert entities["removability"]["everything"]["mean"] == 1
    assert entities["completeness"]["empty"]["agreement"]["mean"] == 0
    page = (place_of(config) / "report.html").read_text()
    assert f"On {entities['words']} words tagged as part of an entity" in page
    assert "random words:" in page


def test_a_finished_run_is_evaluated_on_resume_and_not_where_it_is_not_wanted(finished, tmp_path):
    config, _ = finished
    shutil.copytree(place_of(config), tmp_path / "run")
    path = tmp_path / "run" / "evaluation.json"
    before = json.loads(path.read_text())
    path.unlink()
    wanted = config.evaluation.model_copy(update={"after_training": False, "texts": 5})
    few = config.model_copy(update={"output_dir": str(tmp_path / "run"), "evaluation": wanted})
    run_ner(few, resume=True, device="cpu")
    assert not path.exists()
    assert "There is no evaluation.json" in (tmp_path / "run" / "report.html").read_text()
    wanted = wanted.model_copy(update={"after_training": True})
    run_ner(few.model_copy(update={"evaluation": wanted}), resume=True, device="cpu")
    after = json.loads(path.read_text())
    assert after["sentences"] == 5
    assert after["all_words"]["words"] < before["all_words"]["words"]


def test_the_command_prints_the_scores(place, finished, tmp_path, capsys, monkeypatch):
    config, results = finished
    (tmp_path / "out").mkdir()
    shutil.copy(place_of(config) / "evaluation.json", tmp_path / "out")
    monkeypatch.setattr("lexical_sae.runs.tagging.experiment.run_ner", lambda *_, **__: results)
    file = tmp_path / "a.yaml"
    file.write_text(f"data: {{dataset_name: '{place}'}}\n")
    command.ner(file, out=tmp_path / "out", data=str(place / "train.txt"))
    printed = capsys.readouterr().out
    assert "recipe neighbours (the default of taggers)" in " ".join(printed.split())
    assert "entity F1" in printed
    assert "100.00%" in printed
    assert "at most k words" in printed
    assert "Seed 0, on 24 test sentences" in printed
    assert "Tags that change" in printed


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    config = ModelConfig.model_validate({"gate": "drelu", "shapes": {}})
    return save_pretrained(tiny.model(config), tmp_path_factory.mktemp("tagger") / "model")


def test_tag_prints_entities_columns_or_json(saved, capsys):
    tag_command.tag(saved, [TEXT])
    coloured = capsys.readouterr().out
    tag_command.tag(saved, [TEXT], as_json=True)
    plain = json.loads(capsys.readouterr().out)
    for entity in plain["entities"]:
        assert f"{entity['text']} [{entity['type']}]" in coloured.replace("\n", " ")
    assert plain["entities"]
    tag_command.tag(saved, [TEXT], conll="BIOES")
    columns = [line.split() for line in capsys.readouterr().out.strip().splitlines()]
    assert [word for word, _ in columns] == plain["words"]
    assert {tag[0] for _, tag in columns} <= set("OBIES")


def test_tag_says_why_and_writes_a_page(saved, capsys, tmp_path):
    tag_command.tag(saved, [TEXT], why="muslim", contrast="B-LOC")
    assert "is capitalised" in capsys.readouterr().out
    tag_command.tag(saved, [TEXT, "<script>alert(1)</script> Bank"], html=tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<script" not in page
    assert "&lt;" in page
    assert 'class="entity' in page


def test_tag_refuses_a_place_for_its_page_before_it_loads_a_model(place, tmp_path):
    for page, said in ((tmp_path, "folder; give the file to write in it as --html"), (place / "test.txt", "be lost")):
        with pytest.raises(ValueError, match=said):
            tag_command.tag(tmp_path / "no model", file=place / "test.txt", html=page)


def test_tag_finds_what_a_tag_hangs_on(saved, capsys):
    tag_command.tag(saved, [TEXT], as_json=True, flip="muslim")
    sentence, found = map(json.loads, capsys.readouterr().out.strip().splitlines())
    assert found["word"] == "Muslim"
    assert found["flip"]["is_minimal"] or found["flip"]["at_least"] >= 1
    assert sentence["words"][1] == "Muslim"
    tag_command.tag(saved, [TEXT], flip="muslim", to=found["flip"]["label"])
    printed = capsys.readouterr().out
    assert "Muslim, word 1 of the text, by itself" in printed
    assert found["flip"]["label"] in printed


def test_tag_reads_a_file_and_caps_words(saved, place, capsys):
    tag_command.tag(saved, file=place / "test.txt", as_json=True, topk=1)
    lines = capsys.readouterr().out.strip().splitlines()
    assert len(lines) == 24
    assert json.loads(lines[0])["words"] == ["the", "Bank", "was", "good", "."]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({}, "give either texts"),
        ({"texts": ["a"], "contrast": "O"}, "name it with --why"),
        ({"texts": ["a"], "to": "O"}, "name the word with --flip"),
        ({"texts": ["a"], "flip": "b"}, "'b' is no word of the sentence"),
        ({"texts": ["a"], "as_json": True, "conll": "IOB2"}, "give one of them"),
        ({"texts": ["a"], "conll": "BILOU"}, "tag scheme 'BILOU' is unknown"),
        ({"texts": ["a"], "why": "b"}, "'b' is no word of the sentence"),
    ],
)
def test_tag_refuses_what_does_not_fit(saved, how, message):
    with pytest.raises(ValueError, match=message):
        tag_command.tag(saved, **how)


def test_the_saved_tagger_has_only_tags(finished):
    config, _ = finished
    assert set(from_pretrained(place_of(config) / "model").labels) == {TAG}


def test_a_report_names_whole_words_and_with_all_tokens_everything(finished, tmp_path):
    config, results = finished
    model = from_pretrained(place_of(config) / "model")
    run = tmp_path / "run"
    shutil.copytree(place_of(config), run)
    # As a run of before pieces were summed: they stand among the words.
    old = {**results, "lexicons": [{"type": "ORG", "positions": 9, "words": [OLD_PIECE]}]}
    (run / "results.json").write_text(json.dumps(old))
    assert model.dimensions.clean_mask.sum() < len(model.dimensions)
    default = write_report(Run(run))[0].read_text()
    every = write_report(Run(run), tmp_path / "every.html", all_tokens=True)[0].read_text()
    assert "<td>##ual</td>" not in default + every
    assert not re.search("<td[^>]*>(##|[.,!?]<)", default)
    assert re.search("<td[^>]*>(##|[.,!?]<)", every)
    assert re.search(r"\d+ pieces? (and|or) symbols?", default)
    assert not re.search(r"\d+ pieces? (and|or) symbols?", every)
