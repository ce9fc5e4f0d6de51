import ast
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import lexical_sae
import splade

CLIENT = """
import splade
from lexical_sae import CircuitState, LexicalSAE, evaluate, explain, load_text_dataset, predict, tag

model = LexicalSAE.from_pretrained("model")
reveal_type(model)
reveal_type(predict(model, "a warm, funny film"))
reveal_type(explain(model, ["a warm, funny film"]))
reveal_type(tag(model, "Anna lives in Bern"))
reveal_type(load_text_dataset("sst2").test.texts)
reveal_type(evaluate)
reveal_type(CircuitState)
reveal_type(splade.LexicalSAE)
"""
TYPES = [
    "LexicalSAE",
    "str",
    "list[ShownExplanation]",
    "TaggedSentence",
    "tuple[str, ...]",
    "(model: LexicalSAE, ",
    "type[CircuitState]",
    "type[LexicalSAE]",
]
"""What a type checker finds for each line of the client: the beginning of its answer."""


@pytest.mark.parametrize("name", lexical_sae.__all__)
def test_every_public_name_is_there(name):
    assert getattr(lexical_sae, name) is not None
    assert getattr(splade, name) is getattr(lexical_sae, name)


@pytest.mark.parametrize("package", [lexical_sae, splade])
def test_dir_shows_every_public_name(package):
    assert set(package.__all__) <= set(dir(package))


def test_what_type_checkers_see_is_what_run_time_loads():
    checked = next(node for node in ast.parse(inspect.getsource(lexical_sae)).body if isinstance(node, ast.If))
    seen = {
        name.name: found.module.removeprefix("lexical_sae.")
        for found in checked.body
        if isinstance(found, ast.ImportFrom)
        for name in found.names
    }
    assert seen == lexical_sae._HOMES
    assert {*seen, "__version__"} == set(lexical_sae.__all__)


@pytest.mark.slow
def test_type_checkers_see_the_real_types(tmp_path):
    client = tmp_path / "client.py"
    client.write_text(CLIENT)
    root = Path(lexical_sae.__file__).parents[1]
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(root)]}))
    checker = Path(sys.executable).parent / "basedpyright"
    command = [checker, "--outputjson", "--pythonpath", sys.executable, "--project", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    messages = json.loads(done.stdout)["generalDiagnostics"]
    assert [message["message"] for message in messages if message["severity"] == "error"] == []
    found = [message["message"] for message in messages if message["message"].startswith("Type of")]
    answers = [text.partition(' is "')[2].removesuffix('"') for text in found]
    assert len(answers) == len(TYPES)
    assert [answer[: len(wanted)] for answer, wanted in zip(answers, TYPES, strict=True)] == TYPES


@pytest.mark.parametrize("package", [lexical_sae, splade])
def test_an_unknown_name_is_an_attribute_error(package):
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'Nonsense'"):
        package.Nonsense  # noqa: B018


@pytest.mark.parametrize("package", ["lexical_sae", "splade"])
def test_importing_the_package_does_not_wait_for_torch(package):
    script = f"import sys, {package}; dir({package}); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
