"""The scripts and notebooks of examples/ run as they are, on a tiny encoder and few epochs."""

import json
import runpy
import sys
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from lexical_sae.sklearn.estimator import LexicalEstimator
from tests import tiny

FOLDER = Path(__file__).parent.parent / "examples"
SCRIPTS = sorted(FOLDER.glob("*.py"))
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
PRINTED = {
    "own_csv": ("guessed: text column", "accuracy on", "['positive', 'negative']"),
    "dataframe": ("because", "mean"),
    "grid_search": ("class_weight", "logistic regression"),
    "explain_and_plot": ("positive", "contribution", "'report.html', 'why.png'"),
    "remove_a_word": ("without ['film']", "holds:"),
    "tag_names": ("F1 of whole names", "["),
    "find_label_errors": ("planted errors", "to_correct.csv"),
    "track_a_run": ("step 1:", "epoch 1:"),
    "compare_explainers": ("rank correlation with removal", "shapley", " ms"),
}
"""What a script must say; the figures are the tiny encoder's."""
EXECUTED = runpy.run_path(str(FOLDER.parent / "tools" / "notebooks.py"))["executed"]


WORDS = (
    *("funny", "moved", "to", "grew", "has", "shops", "in"),
    *("acme", "globex", "initech", "umbrella", "oslo", "rome", "lima", "cairo"),
)
"""Of the examples, beside those of the tiny encoder."""


@pytest.fixture(autouse=True)
def tiny_encoder(tmp_path, monkeypatch):
    monkeypatch.setattr(tiny, "WORDS", [*tiny.WORDS, *(word for word in WORDS if word not in tiny.WORDS)])
    monkeypatch.setattr(tiny, "wordpiece", tiny.wordpiece.__wrapped__)
    encoder = str(tiny.saved_encoder(tmp_path / "encoder"))
    monkeypatch.setattr(LexicalEstimator, "_encoder", lambda _: encoder)
    monkeypatch.setenv("MPLBACKEND", "agg")


def test_every_script_is_tried():
    assert {script.stem for script in SCRIPTS} == set(PRINTED)


@pytest.mark.parametrize("name", PRINTED)
def test_a_script_runs_and_says_what_it_should(name, capsys):
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert all(part in said for part in PRINTED[name])
    assert "FAILS" not in said


@pytest.mark.parametrize(("package", "tracker"), [("mlflow", "MLflow"), ("wandb", "WeightsAndBiases")])
def test_the_trackers_of_the_example_log_every_step(package, tracker, monkeypatch, capsys):
    logged = MagicMock()
    monkeypatch.setitem(sys.modules, package, logged)
    names = runpy.run_path(str(FOLDER / "track_a_run.py"))
    steps = capsys.readouterr().out.count("step ")
    names["clf"].fit(names["frame"]["text"], names["frame"]["label"], callbacks=[names[tracker]()])
    log = logged.log_metrics if package == "mlflow" else logged.init().log
    assert log.call_count == steps > 0
    assert all("ce" in call.args[0] and call.kwargs["step"] > 0 for call in log.call_args_list)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_cells_of_a_notebook_run_in_order_and_show_something(path, monkeypatch):
    monkeypatch.chdir(FOLDER)
    stored = json.loads(path.read_text())
    fresh = EXECUTED(stored, path.name)
    for cells in (stored["cells"], fresh["cells"]):
        kinds = [kind for cell in cells for output in cell.get("outputs", ()) for kind in output.get("data", ())]
        assert kinds.count("text/html") >= 1


def test_stored_outputs_of_notebooks_are_small():
    assert len(NOTEBOOKS) == 3
    assert all(path.stat().st_size < 60_000 for path in NOTEBOOKS)
