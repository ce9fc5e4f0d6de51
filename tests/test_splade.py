"""The earlier import name forwards to the package: the same modules, classes and commands."""

import importlib
import importlib.util
import pickle
import subprocess
import sys

import pytest

import lexical_sae
import splade


@pytest.mark.parametrize(
    ("earlier", "now"),
    [
        ("splade.models.lexical_sae", "lexical_sae.models.lexical_sae"),
        ("splade.models.layers.activation", "lexical_sae.models.layers.activation"),
        ("splade.inference", "lexical_sae.inference"),
        *((f"splade.{earlier}", f"lexical_sae.{now}") for earlier, now in splade._MOVED.items()),
        ("splade.attribution.span_aggregation", "lexical_sae.mechanistic.span_aggregation"),
        ("splade.pipelines.experiment", "lexical_sae.runs.experiment"),
    ],
)
def test_an_earlier_module_is_the_module_of_today(earlier, now):
    assert importlib.import_module(earlier) is importlib.import_module(now)
    assert importlib.import_module(now).__name__ == now


def test_types_are_the_same():
    LexicalSAE = importlib.import_module("splade.models.lexical_sae").LexicalSAE
    CircuitState = importlib.import_module("splade.circuits.core").CircuitState
    assert LexicalSAE is lexical_sae.LexicalSAE is splade.LexicalSAE
    assert CircuitState is lexical_sae.CircuitState
    assert LexicalSAE.__module__ == "lexical_sae.models.lexical_sae"


@pytest.mark.parametrize("first", ["splade.circuits.core", "lexical_sae.models.circuit_state"])
def test_either_name_may_be_imported_first(first):
    script = f"""
import importlib, sys
importlib.import_module({first!r})
import splade.circuits.core, lexical_sae.models.circuit_state
assert splade.circuits.core is lexical_sae.models.circuit_state
assert splade.models.circuit_state is lexical_sae.models.circuit_state
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize("name", ["splade.nothing", "splade.models.nothing", "splade.attribution.nothing"])
def test_an_unknown_module_is_not_found(name):
    with pytest.raises(ModuleNotFoundError, match=f"No module named '{name}'"):
        importlib.import_module(name)
    assert importlib.util.find_spec(name) is None


def test_an_unknown_name_cannot_be_imported():
    with pytest.raises(ImportError, match="cannot import name 'nothing' from 'lexical_sae.inference'"):
        exec("from splade.inference import nothing")


def test_a_missing_library_is_named():
    """The module that lacks it exists: it is not the module's name that is unknown."""
    script = "import sys; sys.modules['torch'] = None; import splade.data.batches"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ModuleNotFoundError: import of torch halted")


def test_a_spec_names_the_file_of_today():
    script = """
import importlib.util
spec = importlib.util.find_spec("splade.circuits.core")
assert spec.name == "splade.circuits.core"
assert spec.origin.endswith("models/circuit_state.py")
assert spec.submodule_search_locations is None
assert importlib.util.find_spec("splade.models").submodule_search_locations is not None
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_reloading_keeps_one_finder_and_the_same_modules():
    script = """
import importlib, sys
import splade, splade.utils.cuda
finders = len(sys.meta_path)
assert importlib.reload(splade) is splade
assert len(sys.meta_path) == finders
assert importlib.reload(splade.utils.cuda) is sys.modules["lexical_sae.utils.device"]
import splade.mechanistic.attribution
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_pickles_of_either_name_open():
    from lexical_sae.data import TextSplit

    split = TextSplit(("a film",), (0,))
    now = pickle.dumps(split, protocol=0)
    earlier = now.replace(b"clexical_sae.", b"csplade.").replace(b"lexical_sae.data.examples", b"splade.data.examples")
    assert b"splade.data.examples" in earlier
    assert pickle.loads(earlier) == pickle.loads(now) == split


def test_earlier_commands_run():
    command = [sys.executable, "-m", "splade.scripts.run_experiment", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--config" in done.stdout


def test_a_command_that_does_not_exist_is_not_found():
    command = [sys.executable, "-m", "splade.scripts.run_nothing"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "No module named splade.scripts.run_nothing" in done.stderr
