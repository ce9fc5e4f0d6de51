"""Parts of another package, found by its entry point, work in YAML and in Python like the built-in ones."""

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Literal

import pytest

from lexical_sae.circuits.objective import OTHER_TERMS, register_term
from lexical_sae.circuits.term import Term
from lexical_sae.data.sources.registry import TEXT_DATASETS, register_dataset
from lexical_sae.evaluation.metrics.metric import sampled
from lexical_sae.evaluation.metrics.registry import register_metric
from lexical_sae.training.callbacks import TRACKERS, TensorBoard, register_tracker
from lexical_sae.utils import plugins
from lexical_sae.utils.part import PartConfig
from lexical_sae.utils.plugins import PluginError, load_plugins
from tests import tiny

EXAMPLES = Path(__file__).parent.parent / "examples"
RUN = """
import json, sys, warnings
warnings.simplefilter("error")
from pathlib import Path
from lexical_sae.config.load import load_config
assert "review_parts" not in sys.modules
config = load_config(sys.argv[1])
assert "review_parts" in sys.modules
from lexical_sae import LexicalSAE, evaluate, setup_and_train
from lexical_sae.evaluation.explainers.explainer import ArenaSettings
from lexical_sae.evaluation.explainers.methods import line_up
trained = setup_and_train(config, device="cpu")
some = trained.dataset.test.take(range(8))
again = LexicalSAE.from_pretrained(trained.model.save_pretrained(Path(sys.argv[1]).parent / "model"))
print(json.dumps({
    "gate": type(again.gate).__name__,
    "threshold": config.model.gate.initial_threshold,
    "terms": [term.kind for term in config.training.objective.terms],
    "characters": evaluate(again, some).as_dict()["text_length"]["characters"],
    "true characters": sum(map(len, some.texts)) / len(some),
    "explainers": [one.name for one in line_up(again, ArenaSettings(with_captum=False)).explainers],
    "settings": type(config).model_validate_json(config.model_dump_json(), strict=True) == config,
}))
"""
YAML = """
recipe: neighbours
data: {{dataset_name: invented_reviews, path: {examples}}}
model: {{name: {encoder}, gate: {{kind: square, initial_threshold: 0.5}}, neighbourhood: null}}
training: {{max_epochs: 2, calibrated_start: null, count: null, auxiliary: null,
           objective: {{terms: [mean_square]}}, report_to: [printed]}}
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder on the path with the example's module and the metadata that pip would write for it."""
    place = tmp_path_factory.mktemp("site")
    project = tomllib.loads((EXAMPLES / "plugin" / "pyproject.toml").read_text())["project"]
    shutil.copy(EXAMPLES / "plugin" / "review_parts.py", place)
    meta = place / f"review_parts-{project['version']}.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items()) for group, points in groups
    ]
    (meta / "entry_points.txt").write_text("\n".join(lines))
    return place


def run(code, *arguments, site):
    path = f"{site}:{EXAMPLES.parent}"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={"PYTHONPATH": path, "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_kind_of_part_of_an_installed_package_works_from_yaml(installed, tmp_path):
    settings = tmp_path / "run.yaml"
    encoder = tiny.saved_encoder(tmp_path / "encoder")
    settings.write_text(YAML.format(examples=EXAMPLES, encoder=encoder))
    done = run(RUN, settings, site=installed)
    assert done.returncode == 0, done.stderr
    *printed, last = done.stdout.splitlines()
    found = json.loads(last)
    assert printed[0].startswith("step 1: ")
    assert (found["gate"], found["threshold"], found["terms"]) == ("SquareGate", 0.5, ["mean_square"])
    assert found["characters"] == pytest.approx(found["true characters"])
    assert found["explainers"][-1] == "activation alone"
    assert found["settings"]


def test_a_plugin_that_cannot_be_imported_is_named_with_its_package(tmp_path, monkeypatch):
    (tmp_path / "broken_parts.py").write_text("import no_such_module_at_all\n")
    meta = tmp_path / "broken_parts-1.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-parts\nVersion: 1\n")
    (meta / "entry_points.txt").write_text(f"[{plugins.GROUP}]\nbroken = broken_parts\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(PluginError, match="cannot be imported: No module named 'no_such.*uninstall broken-parts"):
        load_plugins()


class Odd(Term):
    class Config(PartConfig):
        kind: Literal["hoyer"] = "hoyer"

    def forward(self, view):
        return view.state.logits.sum()


def test_a_name_that_is_taken_is_refused_for_every_kind_of_part():
    with pytest.raises(PluginError, match="a term of kind 'hoyer' is built in"):
        register_term(Odd)
    with pytest.raises(PluginError, match="needs a nested Config"):
        register_term(int)
    with pytest.raises(PluginError, match="a metric called 'eraser' is built in"):
        register_metric(sampled("eraser", float, lambda _: 0.0))
    spec = TEXT_DATASETS["sst2"]
    with pytest.raises(PluginError, match="a data set called 'sst2' is there already"):
        register_dataset(type(spec)("sst2", "others", spec.open_folder, "", ""))
    with pytest.raises(PluginError, match="a tracker called 'tensorboard' is there already"):
        register_tracker("tensorboard", dict)
    register_tracker("tensorboard", TensorBoard)
    assert {"tensorboard": TensorBoard} == TRACKERS
    assert OTHER_TERMS.configs == {}
