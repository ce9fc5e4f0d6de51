"""How commands fail: what a user can put right is one sentence, anything else a traceback."""

import io
import re
import subprocess
import sys

import pytest
from rich.console import Console

from lexical_sae import recipes
from lexical_sae.commands.options import METHODS, RECIPES
from lexical_sae.inference import methods
from lexical_sae.report.progress import ProgressBars
from lexical_sae.runs import Run
from lexical_sae.utils.errors import DataError, LexicalSAEError, MissingPackageError, UnavailableError
from lexical_sae.utils.progress import Step


@pytest.fixture
def fail(run, tmp_path, monkeypatch):
    """The exit code and error output of a command that meets an exception."""

    def with_error(error, *options):
        def raise_it(*_):
            raise error

        monkeypatch.setattr(Run, "open", raise_it)
        return run(*options, "report", str(tmp_path))

    return with_error


def test_an_error_that_a_user_can_put_right_is_one_sentence(fail):
    code, _, error = fail(DataError("rows without a text"))
    assert (code, error.strip()) == (1, "error: rows without a text")


def test_with_traceback_it_comes_with_its_place(fail):
    for options in (("--traceback",), ()):
        code, _, error = fail(DataError("rows without a text"), *options)
        assert (code, "error: rows without a text" in error) == (1, True)
        assert ("in raise_it" in error) == bool(options)


@pytest.mark.parametrize("bug", [KeyError("ours"), ValueError("from inside"), RuntimeError("shape")], ids=repr)
def test_a_bug_shows_its_traceback_and_asks_for_a_report(fail, bug):
    code, _, error = fail(bug)
    assert code == 1
    assert "in raise_it" in error
    assert f"error: {type(bug).__name__}: this is a bug in lexical-sae; please report it" in error


def test_an_error_of_the_system_has_no_number(fail):
    code, _, error = fail(FileNotFoundError(2, "No such file or directory", "b.csv"))
    assert (code, error.strip()) == (1, "error: b.csv: no such file or directory")


def test_advice_for_python_is_given_in_options(fail):
    error = fail(DataError("which column holds the text? Give text_column= or skip_bad_rows=True"))[2]
    assert "--text-column" in error
    assert "--skip-bad-rows" in error
    assert "text_column" not in error


def test_ctrl_c_ends_without_a_traceback(run, monkeypatch, tmp_path):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "open", interrupt)
    code, _, error = run("report", str(tmp_path))
    assert code in (1, 130)
    assert "Traceback" not in error


def test_all_errors_are_value_errors_and_some_are_those_of_python_too():
    assert issubclass(LexicalSAEError, ValueError)
    assert issubclass(UnavailableError, RuntimeError)
    assert issubclass(MissingPackageError, ImportError)


@pytest.mark.parametrize(
    "typed",
    [
        ("train", "nowhere.csv"),
        ("train", "sst2", "--recipe", "anchord"),
        ("train", "sst2", "--device", "gpu"),
        ("explain", "nowhere", "a text"),
        ("evaluate", "nowhere", "nowhere.csv"),
        ("lexicon", "nowhere", "--data", "sst2"),
        ("edit", "nowhere", "lexicon.yaml", "--out", "x"),
        ("report", "nowhere"),
        ("faithfulness", "nowhere"),
        ("tag", "nowhere", "a text"),
    ],
    ids=" ".join,
)
def test_a_typo_is_answered_before_torch_is_loaded(typed):
    script = """
import sys
from lexical_sae.cli import main
try:
    main()
except SystemExit as end:
    assert end.code == 1
    sys.exit("torch was loaded" if "torch" in sys.modules else 0)
"""
    done = subprocess.run([sys.executable, "-c", script, *typed], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) <= 2


def test_the_options_know_the_same_names_as_the_library():
    assert set(RECIPES) == set(recipes.RECIPES)
    assert set(METHODS) == set(methods.METHODS)


def test_every_command_is_in_a_panel(run):
    shown = run("--help")[1]
    for panel in ("Start", "Explain", "Measure", "Edit", "Compare", "Studies"):
        assert f"─ {panel} ─" in shown


@pytest.mark.parametrize("width", [60, 80])
def test_progress_begins_with_bar_step_and_time_left_and_does_not_wrap(width):
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    with ProgressBars(console) as bars:
        bars(Step("training", 120, 12000, {"ce": 0.512, "kl": 0.31, "active": 44.0, "lambda": 1.25, "names": 0.113}))
    line = [part for part in re.split(r"\x1b\[\??\w+|[\r\n]", console.file.getvalue()) if part.strip()][-1]
    assert len(line) <= width
    assert line.index("120/12000") < line.index("training")


def test_plant_and_edit_never_overwrite(run, tmp_path):
    assert run("plant", "bias", "--out", str(tmp_path / "data"), "--texts", "16")[0] == 0
    code, _, error = run("plant", "bias", "--out", str(tmp_path / "data"), "--texts", "16")
    assert (code, "exists already" in error) == (1, True)
