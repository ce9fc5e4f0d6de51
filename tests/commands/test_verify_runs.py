"""Every `verify` experiment, as a newcomer would type it: real encoder, real data, a few hundred rows."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parents[2]
MINUTES = 6.0
"""The files promise about two on a quiet machine; a busy one may take three times as long."""
RUNS = {
    "verify": [["train"], ["sae", "--steps", "300"]],
    "verify_full": [["train"]],
    "verify_multi_dataset": [["multi-dataset", "--names-texts", "20"]],
    "verify_ablation": [["ablation", "--names-texts", "20"]],
    "verify_sota_comparison": [["sota-comparison", "--names-texts", "20"]],
    "verify_faithfulness": [["faithfulness", "--texts", "10", "--lime-samples", "50"]],
    "verify_long_context": [["long-context", "--lengths", "64,256", "--needles", "8"]],
    "verify_polysemy": [["polysemy", "--mentions", "20", "--most-pairs", "50"]],
    "ner/conll2003_verify": [["ner"]],
}


def needs_the_data_folder(name):
    """Whether the experiment reads something that pip cannot bring."""
    return name in ("verify_polysemy", "verify_multi_dataset") and "LEXICAL_SAE_DATA" not in os.environ


@pytest.mark.slow
@pytest.mark.parametrize("name", list(RUNS))
def test_a_verify_experiment_runs_and_leaves_its_results(name, tmp_path):
    if needs_the_data_folder(name):
        pytest.skip("needs data in LEXICAL_SAE_DATA")
    runs_and_leaves_its_results(name, RUNS[name], tmp_path)


@pytest.mark.slow
def test_heads_are_compared_on_the_file_of_a_run_with_a_hidden_layer(tmp_path):
    written = (HERE / "experiments" / "verify.yaml").read_text().replace("recipe: anchored", "recipe: neighbours")
    (tmp_path / "verify.yaml").write_text(written)
    runs_and_leaves_its_results(tmp_path / "verify", [["bcos-ablation", "--names-texts", "20"]], tmp_path)


def runs_and_leaves_its_results(name, commands, tmp_path):
    config, out = HERE / "experiments" / f"{name}.yaml", tmp_path / "run"
    started = time.monotonic()
    for command, *others in commands:
        program = str(Path(sys.executable).with_name("lexical-sae"))
        line = [program, command, "--config", str(config), "--out", str(out), *others]
        done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
    assert time.monotonic() - started < 60 * MINUTES
    found = sorted(path.relative_to(out).as_posix() for path in out.rglob("*.json"))
    assert found
    for path in out.rglob("*.json"):
        json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert any(path.suffix == ".html" for path in out.rglob("*"))
