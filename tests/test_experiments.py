from pathlib import Path

import pytest

from lexical_sae.config.load import build_config, load_config
from lexical_sae.runs.comparing.variants import load_datasets, load_variants, term_ablations

FILES = sorted((Path(__file__).parent.parent / "experiments").rglob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_experiment_file_loads(path):
    assert load_config(path).experiment_name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_experiment_of_a_file_with_several_can_be_made(path):
    config = load_config(path)
    study = load_datasets(path) if config.datasets else load_variants(path, term_ablations, kind="ablation")
    assert len(study.variants) > max(1, len(config.datasets) - 1)


def test_there_are_experiment_files():
    assert FILES


def test_a_folder_in_the_home_is_one_place_for_all_who_write_to_it():
    assert build_config({"output_dir": "~/my runs/a"}).output_dir == str(Path.home() / "my runs" / "a")
