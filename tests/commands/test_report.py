import json
import re
from urllib.parse import unquote

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from lexical_sae.commands.report import report
from lexical_sae.models.persistence import save_pretrained
from lexical_sae.runs import Run
from lexical_sae.runs import run as run_module
from lexical_sae.runs.folder import whole_records
from lexical_sae.runs.pages import report as script
from lexical_sae.runs.pages.report import choose_rows, spread_rows, write_explanations
from lexical_sae.runs.pages.report_parts import ReportParts
from tests.commands.runs import BASELINES, INTERVAL, LABELS, NAMES, TEST, write
from tests.literal import literal_model
from tests.report.explanations import NASTY, explanation
from tests.report.test_context import SCORES

app = typer.Typer()
app.command()(report)


def run(*arguments) -> str:
    return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False).stdout


def sections(page: str) -> list[str]:
    return re.findall(r'<section id="(\w+)">', page)


def test_a_finished_run_is_shown_whole(finished):
    (finished.parent / "frontier.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    output = run(finished, "--texts", 4)
    page = (finished / "report.html").read_text()
    assert sections(page) == ["figures", "evaluation", "training", "lexicons", "texts", "frontier", "settings"]
    assert "report.html" in output.replace("\n", "")
    for told in (
        "On 490 texts of texts.csv",
        "80.0% (75.0% to 85.0%)",
        "Labels that change without the top-attributed words",
        "87.5%",
        "96.5%",
        "model +7.5% (+5.0% to +10.0%)",
        "torch",
        "texts.csv",
        "Report of a run",
    ):
        assert told in page
    assert page.count("<article>") == 4
    assert page.count("✓ right") == 2
    assert page.count("✗ wrong") == 2


def test_the_page_of_several_experiments_is_not_overwritten(bare):
    write(bare, "results.json", {"experiment": "films", "is_paired": True, "runs": []})
    with pytest.raises(ValueError, match="holds several experiments; give the folder of one of them"):
        run(bare)
    assert not (bare / "report.html").exists()


def test_the_same_run_gives_the_same_report(finished, tmp_path):
    pages = [tmp_path / name for name in ("a.html", "b.html")]
    for page in pages:
        run(finished, "--out", page, "--texts", 2)
    assert pages[0].read_bytes() == pages[1].read_bytes()


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (".", "it is a folder"),
        ("results.json/page.html", r"results\.json is a file, not a folder"),
        ("results.json", "it is read, and would be lost"),
    ],
    ids=["folder", "in a file", "of the run"],
)
def test_a_place_where_no_page_can_be_written_is_told_before_it_is_made(finished, monkeypatch, out, message):
    before = (finished / "results.json").read_bytes()
    monkeypatch.setattr(script, "run_page", lambda *_: pytest.fail("made in vain"))
    with pytest.raises(ValueError, match=message):
        run(finished, "--out", finished / out)
    assert (finished / "results.json").read_bytes() == before


def test_what_a_run_lacks_is_said(bare):
    output = run(bare)
    page = (bare / "report.html").read_text()
    assert sections(page) == ["settings", "missing"]
    for name in (
        "results.json",
        "evaluation.json",
        "names.json",
        "baselines.json",
        "history.jsonl",
        "environment.json",
        "model",
    ):
        assert f"There is no {name}" in page
        assert f"There is no {name}" in output


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"test": 1}', "null", "\udcff"], ids=["torn", "list", "odd", "null", "bytes"]
)
@pytest.mark.parametrize("name", ["results.json", "evaluation.json", "names.json", "baselines.json"])
def test_a_damaged_file_is_said_and_the_rest_is_shown(finished, name, text):
    (finished / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    (finished / "model").unlink()
    run(finished)
    page = (finished / "report.html").read_text()
    assert f"{name} cannot be shown" in page
    shown = [] if name == "evaluation.json" else ["evaluation"]
    assert sections(page) == ["figures", *shown, "training", "settings", "missing"]


def test_context_measures_are_shown_where_the_file_has_them(finished):
    run(finished)
    assert "label leakage" not in (finished / "report.html").read_text()
    write(finished, "names.json", {"model": NAMES | {"context": SCORES}, "bag of words": NAMES})
    run(finished)
    page = (finished / "report.html").read_text()
    assert "75.8% (73.0% to 78.0%)" in page
    assert "names.json cannot be shown" not in page


def test_accuracies_stand_beside_the_context_free_one_and_baselines(finished):
    assert [row[:2] for row in ReportParts(Run(finished)).accuracies()] == [("accuracy", "87.5%"), ("TF-IDF", "80.0%")]
    write(finished, "names.json", {"model": NAMES | {"context": SCORES}, "bag of words": NAMES})
    with_baselines = ReportParts(Run(finished)).accuracies()
    assert [name for name, _, _ in with_baselines] == ["accuracy", "context-free accuracy", "TF-IDF"]
    (finished / "baselines.json").unlink()
    names = [name for name, _, _ in ReportParts(Run(finished)).accuracies()]
    assert names == ["accuracy", "context-free accuracy", "bag of words", "TF-IDF"]
    write(finished, "results.json", {"test": 1})
    write(finished, "names.json", [])
    assert ReportParts(Run(finished)).accuracies() == []


def test_the_report_of_literal_words_leads_with_them(finished):
    (finished / "model").unlink()
    save_pretrained(literal_model(), finished / "model")
    run(finished)
    page = (finished / "report.html").read_text()
    assert sections(page)[:2] == ["lead", "figures"]
    lead = page[page.index('id="lead"') : page.index('id="figures"')]
    assert 0 < lead.count("<article>") <= script.LEAD_TEXTS
    assert 'class="shift"' in lead
    assert all(label in lead for label in LABELS)


def test_data_that_is_gone_is_said(finished):
    (finished.parent / "texts.csv").unlink()
    run(finished)
    page = (finished / "report.html").read_text()
    assert "There are no words and no texts" in page
    assert sections(page) == ["figures", "evaluation", "training", "settings", "missing"]


def test_labels_that_are_not_the_models_are_said(finished):
    data = finished.parent / "texts.csv"
    data.write_text(data.read_text().replace("neutral", "odd"))
    run(finished)
    assert "the labels of texts.csv are negative, odd, positive" in (finished / "report.html").read_text()


def test_texts_that_the_model_may_have_learned_from_are_not_shown(finished):
    write(finished, "decisions.json", {"test_digest": "of other texts", "is_correct": "1", "texts": ""})
    run(finished)
    page = (finished / "report.html").read_text()
    assert "has changed since the run" in page
    assert "<article>" not in page


def test_rows_are_drawn_with_the_seed_of_the_run(finished, monkeypatch):
    seen = []
    monkeypatch.setattr(run_module, "load_data", lambda _, seed: seen.append(seed) or (_ for _ in ()).throw(OSError))
    run(finished)
    (finished / "environment.json").write_text("{")
    run(finished)
    assert seen == [4, 3]


def test_of_several_seeds_the_first_is_looked_into(bare):
    write(
        bare,
        "results.json",
        {
            "runs": [{"seed": s, "test": TEST} for s in (3, 4)],
            "mean": {"accuracy": INTERVAL, "active_words": INTERVAL},
            "measured": {"names": {"model": {"delete": {"passed": {**INTERVAL, "mean": 0.875, "low": 0.8125}}}}},
        },
    )
    for seed in (10, 4):
        (bare / f"seed-{seed}").mkdir()
        (bare / f"seed-{seed}" / "history.jsonl").write_text(json.dumps({"step": 1, "ce": 0.5}) + "\n")
        write(bare / f"seed-{seed}", "names.json", {"model": NAMES | {"texts": seed}, "bag of words": NAMES})
    run(bare)
    page = (bare / "report.html").read_text()
    assert sections(page) == ["figures", "training", "settings", "missing"]
    assert "those of seed-4, the first of several" in page
    assert page.index("Mean of 2 seeds") < page.index("(seed 3)") < page.index("(seed 4)")
    assert "The model on 4 texts" in page
    assert page.index("95 % CI 81.2% to 89.0%") < page.index("(seed 3)"), "names over seeds are in the first table"


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no run.*give the output_dir"):
        run(tmp_path)
    (tmp_path / "words-20").mkdir()
    (tmp_path / "words-20" / "resolved_config.yaml").touch()
    with pytest.raises(ValueError, match="holds no run.*its runs are in words-20"):
        run(tmp_path)


def test_only_some_texts_of_a_large_test_split_are_read(finished, monkeypatch):
    monkeypatch.setattr(script, "READ_AT_MOST", 2)
    run(finished, "--texts", 0)
    page = (finished / "report.html").read_text()
    assert "are those of 2 of" in page
    assert sections(page) == ["figures", "evaluation", "training", "lexicons", "settings", "missing"]


def test_a_sweep_is_found_beside_or_above(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    assert ReportParts(Run(folder)).frontier() is None
    (tmp_path / "frontier.svg").write_text("above")
    assert ReportParts(Run(folder)).frontier().svg == "above"
    (folder / "frontier.svg").write_text("here")
    assert ReportParts(Run(folder)).frontier().svg == "here"


def test_yardsticks_of_a_sweep_are_those_of_its_points(bare):
    write(bare.parent, "baselines.json", BASELINES)
    assert ReportParts(Run(bare)).baselines() == ()
    (bare.parent / "frontier.svg").write_text("<svg/>")
    (shown,) = ReportParts(Run(bare)).baselines()
    assert [name for name, *_ in shown.rows] == ["this model", "TF-IDF"]
    write(bare, "baselines.json", {**BASELINES, "test_texts": 7})
    assert ReportParts(Run(bare)).baselines()[0].heading == "On 7 test texts"


def test_a_study_that_lies_with_the_first_seed_is_linked_too(bare):
    (bare / "seed-4").mkdir()
    for page in (bare / "faithfulness.html", bare / "seed-4" / "sae.html"):
        page.write_text("a study")
    assert [study.address for study in ReportParts(Run(bare)).studies(bare / "report.html")] == [
        "faithfulness.html",
        "seed-4/sae.html",
    ]


def test_pages_of_studies_are_linked_from_wherever_the_report_lies(bare):
    odd = bare / "javascript:x & <b>"
    odd.mkdir()
    for page in (bare / "sae.html", bare / "polysemy.html", odd / "surgery.html"):
        page.write_text("a study")
    (bare / "long_context.json").write_text("{}")
    run(bare)
    page = (bare / "report.html").read_text()
    assert sections(page) == ["studies", "settings", "missing"]
    links = re.findall(r'<li><a href="(.*?)">(.*?)</a>', page)
    assert [address for address, _ in links] == [
        "sae.html",
        "polysemy.html",
        "javascript%3Ax%20%26%20%3Cb%3E/surgery.html",
    ]
    assert links[-1][1] == "Words removed: javascript:x &amp; &lt;b&gt;"
    elsewhere = bare.parent / "pages" / "mine.html"
    run(bare, "--out", elsewhere)
    for address, _ in re.findall(r'<li><a href="(.*?)">(.*?)</a>', elsewhere.read_text()):
        assert (elsewhere.parent / unquote(address)).read_text() == "a study"


def test_a_page_says_what_was_trained_on_what(bare):
    assert ReportParts(Run(bare)).about() == ""
    settings = "experiment_name: mine\nrecipe: cis\ndata: {dataset_name: a.csv}\nmodel: {name: 'bundled:minilm'}\n"
    (bare / "resolved_config.yaml").write_text(settings)
    assert ReportParts(Run(bare)).about() == "mine: bundled:minilm, recipe cis, trained on a.csv."
    run(bare)
    assert "mine: bundled:minilm, recipe cis" in (bare / "report.html").read_text()


def test_a_history_is_read_up_to_a_torn_line():
    assert whole_records(b'{"a": 1}\n{"b"') == [{"a": 1}]
    assert whole_records(b'{"a": 1}\n3\n{"b": 2}') == [{"a": 1}]
    assert whole_records(b"") == []


def test_explanations_become_a_page(tmp_path):
    made = (explanation(text=nasty) for nasty in NASTY)
    page = write_explanations(made, tmp_path / "out" / "why.html", "my <b>file</b>.csv").read_text()
    assert sections(page) == ["texts"]
    assert f"{len(NASTY)} explanations" in page
    assert "my &lt;b&gt;file&lt;/b&gt;.csv" in page
    assert page.count("<article>") == len(NASTY)


def test_a_page_shows_the_first_explanations_and_counts_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(script, "SHOWN_AT_MOST", 2)
    page = write_explanations([explanation()] * 5, tmp_path / "why.html", "").read_text()
    assert page.count("<article>") == 2
    assert "3 more texts" in page


@given(st.lists(st.booleans(), max_size=12), st.integers(0, 8))
def test_examples_are_half_right_and_half_wrong_where_there_are_enough(are_wrong, wanted):
    rows = choose_rows(are_wrong, wanted)
    assert len(set(rows)) == len(rows) == min(wanted, len(are_wrong))
    chosen = [are_wrong[row] for row in rows]
    counts = [chosen.count(False), chosen.count(True)]
    there = [are_wrong.count(False), are_wrong.count(True)]
    least = [min(have, share) for have, share in zip(there, (wanted - wanted // 2, wanted // 2), strict=True)]
    assert all(count >= share for count, share in zip(counts, least, strict=True))
    assert chosen == sorted(chosen)


@given(st.integers(40, 3000), st.integers(8, 40))
def test_any_beginning_of_the_rows_covers_the_file(count, most):
    rows = sorted(spread_rows(count, most))
    assert len(set(rows)) == most
    gaps = [b - a for a, b in zip([-1, *rows], [*rows, count], strict=True)]
    assert max(gaps) <= 4 * count / most


def test_all_rows_are_taken_where_few_are_there():
    assert sorted(spread_rows(5, 9)) == list(range(5))
    assert spread_rows(8, 4) == [0, 5, 2, 7]


def test_names_settings_and_errors_of_a_run_stay_text(bare):
    nasty = "<img src=x onerror=alert(1)> {{7*7}}"
    folder = bare.rename(bare.parent / nasty)
    settings = {"experiment_name": nasty, "recipe": nasty, "data": {"dataset_name": nasty}, "model": {"name": nasty}}
    (folder / "resolved_config.yaml").write_text(json.dumps(settings))
    write(folder, "results.json", {"test": {nasty: 1}})
    write(folder, "names.json", {"model": NAMES | {"texts": nasty}, "bag of words": NAMES})
    write(folder, "baselines.json", {**BASELINES, "baselines": {nasty: {"accuracy": 0.5, "setting": nasty}}})
    (folder / "model").mkdir()
    run(folder)
    page = (folder / "report.html").read_text()
    assert "<img src=x" not in page
    assert page.count("{{7*7}}") >= 10
    assert "cannot be had" in page


def test_a_report_names_whole_words_unless_all_tokens_are_asked_for(finished):
    for all_tokens in (False, True):
        run(finished, "--texts", 4, *(["--all-tokens"] if all_tokens else []))
        page = (finished / "report.html").read_text()
        listed = re.findall(r'<td class="word" dir="auto">([^<]*?) ?<', page)
        assert listed
        assert any(not name[:1].isalpha() for name in listed) == all_tokens
        assert ("that are no words" in page) != all_tokens
