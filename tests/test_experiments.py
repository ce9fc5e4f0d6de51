from pathlib import Path

import pytest

from splade.config.load import load_config

FILES = sorted((Path(__file__).parent.parent / "experiments").rglob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_experiment_file_loads(path):
    assert load_config(path).experiment_name


def test_there_are_experiment_files():
    assert FILES
