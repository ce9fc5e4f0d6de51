"""Every command that the seed documents print, exactly as printed.

A command runs in an empty working folder that has the project's `experiments/`, with small stand-ins for the encoders
and data sets that it would download (`tests.stand_ins`); everything else is the real thing.
"""

import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import stand_ins

ROOT = Path(__file__).parents[2]
SEEDS = ROOT.parent / "shared" / "seeds"
SCRIPTS = "python -m splade.scripts."
QUICK = {
    "run_faithfulness --config experiments/civilcomments.yaml": "civilcomments/faithfulness.json",
    "run_surgery --config experiments/surgery.yaml": "surgery/civilcomments/surgery/surgery.json",
    "run_long_context --config experiments/long_context.yaml": "long_context/long_context.json",
}
"""Scripts that train what they need, with their arguments, and what each leaves in `results/`."""
LONG = {
    "run_experiment --config experiments/verify_full.yaml": "verify_full/sae.json",
    "run_faithfulness --config experiments/verify.yaml": "verify/faithfulness.json",
    "run_ner --config experiments/ner/conll2003.yaml": "ner/conll2003/evaluation.json",
    "run_ner --config experiments/ner/conll2003_verify.yaml": "ner/conll2003_verify/evaluation.json",
    "run_ablation --config experiments/ablation/ablation.yaml": "ablation/results.json",
    "run_experiment --config experiments/paper/sst2.yaml": "paper/sst2/results.json",
    "run_experiment --config experiments/paper/ag_news.yaml": "paper/ag_news/results.json",
    "run_experiment --config experiments/paper/imdb.yaml": "paper/imdb/results.json",
    "run_ablation --config experiments/paper/sst2_ablation.yaml": "paper/sst2_ablation/results.json",
    "run_multi_dataset --config experiments/paper/multi_dataset.yaml": "paper/multi_dataset/results.json",
    "run_bcos_ablation --config experiments/paper/sst2.yaml": "paper/sst2/bcos_ablation/results.json",
}
PYTEST = ("pytest tests/", 'pytest tests/ -k "not slow"', "pytest tests/test_sequence_model.py")
INSTALL = "pip install -e ."


@pytest.fixture
def workplace(monkeypatch, tmp_path):
    """An empty working folder with the experiment files, and stand-ins for what would be downloaded."""
    stand_ins.bundled_encoder(monkeypatch, tmp_path / "encoders")
    stand_ins.hub_model(monkeypatch, tmp_path / "hub")
    stand_ins.data_folder(monkeypatch, tmp_path / "data")
    place = tmp_path / "work"
    place.mkdir()
    (place / "experiments").symlink_to(ROOT / "experiments")
    monkeypatch.chdir(place)
    return place


def exit_code(command, monkeypatch) -> int:
    """That of a printed script: the module is run as a program, with these arguments."""
    _, _, module, *arguments = shlex.split(SCRIPTS + command)
    monkeypatch.setattr(sys, "argv", [module, *arguments])
    monkeypatch.delitem(sys.modules, module, raising=False)
    try:
        runpy.run_module(module, run_name="__main__")
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.mark.parametrize(("command", "left"), QUICK.items(), ids=lambda given: given.replace("/", ":"))
def test_a_printed_command_trains_what_it_needs_and_exits_with_0(command, left, workplace, monkeypatch, capsys):
    assert exit_code(command, monkeypatch) == 0, capsys.readouterr().err
    assert "it is trained first" in " ".join(capsys.readouterr().out.split())
    assert (workplace / "results" / left).is_file()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "left"), LONG.items(), ids=lambda given: given.removeprefix("python -m splade.scripts.")
)
def test_a_printed_command_exits_with_0(command, left, workplace, monkeypatch, capsys):
    assert exit_code(command, monkeypatch) == 0, capsys.readouterr().err
    assert (workplace / "results" / left).is_file()


@pytest.mark.parametrize("command", QUICK, ids=lambda command: command.replace("/", ":"))
def test_without_data_a_printed_command_says_where_to_put_it(command, workplace, monkeypatch, capsys):
    shutil.rmtree(workplace.parent / "data")
    monkeypatch.setattr("lexical_sae.data.loader.fetch_from_pypi", _out_of_reach)
    monkeypatch.setattr("lexical_sae.data.loader.load_from_hub", _out_of_reach)
    assert exit_code(command, monkeypatch) == 1
    told = " ".join(capsys.readouterr().err.split())
    assert re.search(r"Give its folder with path= \(data\.path\), or put it in \$LEXICAL_SAE_DATA/\w+", told)
    assert not (workplace / "results").exists()


def _out_of_reach(*_):
    raise RuntimeError("no network")


@pytest.mark.slow
@pytest.mark.parametrize("line", PYTEST)
def test_pytest_finds_tests_for_a_printed_command(line):
    python = [sys.executable, "-m", *shlex.split(line)]
    # All but the last are the suite itself, which would run itself without end.
    only = [] if line == PYTEST[-1] else ["--collect-only", "-q"]
    done = subprocess.run([*python, *only], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.slow
def test_the_package_installs_by_the_printed_command(tmp_path, monkeypatch):
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    for package in ("lexical_sae", "splade"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([sys.executable, "-m", "venv", "venv"], cwd=tmp_path, check=True)
    # What it depends on is large, and is installed here already.
    monkeypatch.setenv("PIP_NO_DEPS", "1")
    python = tmp_path / "venv" / "bin" / "python"
    done = subprocess.run(
        [python, "-m", *shlex.split(INSTALL)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert (python.parent / "lexical-sae").is_file()


@pytest.mark.skipif(not SEEDS.is_dir(), reason="the seed documents are not beside the project")
def test_the_list_of_printed_commands_is_complete():
    documents = [path.read_text(encoding="utf-8", errors="replace") for path in sorted(SEEDS.glob("*.txt"))]
    assert documents
    blocks = [block for text in documents for block in re.findall(r"```bash\n(.*?)```", text, re.DOTALL)]
    lines = [re.sub(r"\s+#.*", "", line).strip() for block in blocks for line in block.splitlines()]
    others = ("git clone ", "cd ", "#")
    printed = {line for line in lines if line and not line.startswith(others)}
    assert printed == {*(SCRIPTS + command for command in (*QUICK, *LONG)), *PYTEST, INSTALL}
