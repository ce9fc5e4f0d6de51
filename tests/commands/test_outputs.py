"""The command line on texts with any number of labels, and with a number each: train, evaluate, explain, report."""

import csv
import json

import pytest

from lexical_sae.runs import Run
from tests import tiny
from tests.outputs.planted import PLANTED, label_set, number_set

MAKE = {"labels": label_set, "number": number_set}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return tiny.saved_encoder(tmp_path_factory.mktemp("outputs") / "encoder")


def data_file(path, kind):
    """All rows of a planted set as a file."""
    dataset = MAKE[kind](160)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["comment", *dataset.label_names])
        rows = [
            row
            for s in (dataset.train, dataset.validation, dataset.test)
            for row in zip(s.texts, s.labels, strict=True)
        ]
        # A word of its own in many texts, so that test texts have some that training never met.
        new = [f"{word}{end}" for end in ("ly", "ness", "ing", "ed") for word in tiny.WORDS[3:30]]
        for i, (text, label) in enumerate(rows):
            writer.writerow([f"{text} {new[i % len(new)]}", *(label if kind == "labels" else [label])])
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    return {kind: data_file(folder / f"{kind}.csv", kind) for kind in MAKE}


@pytest.fixture(scope="module")
def experiment(encoder, files, tmp_path_factory):
    """An experiment file of each kind, its run in a folder of its own."""
    folder = tmp_path_factory.mktemp("experiments")
    columns = {"labels": {"label_columns": list(PLANTED)}, "number": {"label_column": "stars", "target": "number"}}
    found = {}
    for kind, path in files.items():
        found[kind] = folder / f"{kind}.yaml"
        settings = {"experiment_name": kind, "output_dir": str(folder / kind), "model": {"name": str(encoder)}}
        data = {"dataset_name": str(path), "text_column": "comment", **columns[kind]}
        found[kind].write_text(json.dumps({**settings, "training": {"max_epochs": 1}, "data": data}))
    return found


@pytest.mark.parametrize("kind", MAKE)
def test_the_whole_way(run, experiment, files, kind):
    code, shown, error = run("train", "--config", str(experiment[kind]))
    assert code == 0, error
    folder = experiment[kind].parent / kind
    first = {"labels": "macro F1", "number": "mean absolute error"}[kind]
    assert first in shown
    assert f"TF-IDF: {first}" in shown
    assert "accuracy" not in shown
    results = json.loads((folder / "results.json").read_text())
    assert results["test"]["output"] == kind
    assert len(results["test"].get("per_label", ())) == (3 if kind == "labels" else 0)
    assert "skipped" in json.loads((folder / "evaluation.json").read_text())
    assert not (folder / "names.json").exists()
    assert "could not be written" not in shown
    page = (folder / "report.html").read_text()
    assert first in page
    assert "nan" not in page.lower().replace("finan", "")

    code, shown, error = run("evaluate", str(folder), str(files[kind]), "--text-column", "comment")
    assert code == 0, error
    assert first in shown
    assert "only the" in shown
    assert "Not measured: performance" in shown

    code, shown, error = run("explain", str(folder), "the film was great money", "--json")
    assert code == 0, error
    lines = [json.loads(line) for line in shown.splitlines()]
    assert {line["output"] for line in lines} == {kind}
    total = lines[0]["bias"] + sum(word["contribution"] for word in lines[0]["words"])
    assert total + (lines[0]["pieces"] or {"contribution": 0})["contribution"] == pytest.approx(lines[0]["explained"])

    code, shown, error = run("report", str(folder))
    assert code == 0, error
    for refused in (
        ("flip", str(folder), "a great film"),
        ("names", str(folder)),
        ("explore", str(folder), "--html", str(folder / "explorer.html")),
        ("score", str(files[kind]), "--model", str(folder), "--out", str(folder / "scored")),
        ("faithfulness", str(folder)),
    ):
        code, shown, error = run(*refused)
        assert code != 0, refused
        assert "Traceback" not in error, refused

    again = Run.open(folder)
    code, shown, error = run("baselines", "--config", str(experiment[kind]))
    assert code == 0, error
    assert again.baselines["output"] == kind


def test_a_file_with_text_labels_is_no_file_of_numbers(run, tmp_path):
    bad = tmp_path / "bad.csv"
    bad.write_text("text,stars\na film,good\nanother,bad\n")
    code, _, error = run("train", str(bad), "--target", "number", "--out", str(tmp_path / "run"))
    assert code == 1
    assert "'good' is not a number; for names of classes leave out" in error
    assert not (tmp_path / "run" / "resolved_config.yaml").exists()
    code, _, error = run("train", str(bad), "--target", "numbr")
    assert code == 1
    assert "did you mean 'number'?" in error
