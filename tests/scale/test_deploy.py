"""The examples in `deploy/` are not run; they parse, name what they need, and call options that exist."""

import re
import tomllib
from pathlib import Path

import pytest
import typer
import yaml

from lexical_sae.cli import app

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "deploy").glob("*.yaml"))
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
(PIN,) = (one.removeprefix("ray==") for one in EXTRAS["ray"] if one.startswith("ray=="))


def parsed(name):
    return yaml.safe_load((ROOT / "deploy" / name).read_text())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_says_that_it_was_not_run_and_pins_our_ray(path):
    text = path.read_text()
    assert "never run here" in text
    assert set(re.findall(r"\d+\.\d+\.\d+", text)) == {PIN}
    assert f"ray=={PIN}" in (ROOT / "requirements-ray.txt").read_text().split()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_calls_score_with_options_that_it_has(path):
    known = {name for one in typer.main.get_command(app).commands["score"].params for name in one.opts}
    options = set(re.findall(r"--[a-z-]+", path.read_text()))
    assert {"--out", "--engine", "--ray-address"} <= options <= known


def test_the_ray_job_has_what_kuberay_asks_for():
    job = parsed("kuberay-job.yaml")
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    cluster = job["spec"]["rayClusterSpec"]
    assert cluster["rayVersion"] == PIN
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        mounts = {mount["name"]: mount["mountPath"] for box in pod["containers"] for mount in box["volumeMounts"]}
        assert mounts == {"shared": "/shared"}
        assert {volume["name"] for volume in pod["volumes"]} == set(mounts)


def test_the_cluster_has_a_head_and_workers_of_known_types():
    cluster = parsed("ray-cluster.yaml")
    assert cluster["head_node_type"] in cluster["available_node_types"]
    assert {"cluster_name", "provider", "auth", "max_workers"} <= set(cluster)
    assert cluster["available_node_types"]["worker"]["resources"]["CPU"] > 1
