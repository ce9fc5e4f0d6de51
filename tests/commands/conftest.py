import pytest

from lexical_sae.models.persistence import save_pretrained
from tests import tiny
from tests.commands.runs import BASELINES, LABELS, NAMES, TEST, write
from tests.evaluation.corpora import TEXTS
from tests.report.evaluations import evaluation


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_pretrained(tiny.model(), tmp_path_factory.mktemp("models") / "model")


@pytest.fixture
def bare(tmp_path):
    """A run that has only begun."""
    data, folder = tmp_path / "texts.csv", tmp_path / "a run"
    texts = [f"{text} {i}" for i in range(6) for text in filter(None, TEXTS)]
    lines = [f'"{text}",{LABELS[i % 3]}' for i, text in enumerate(texts)]
    data.write_text("\n".join(["text,label", *lines]) + "\n")
    folder.mkdir()
    (folder / "resolved_config.yaml").write_text(f"data: {{dataset_name: '{data}'}}\nevaluation: {{seeds: [3, 4]}}\n")
    return folder


@pytest.fixture
def finished(bare, model):
    (bare / "model").symlink_to(model)
    write(bare, "environment.json", {"seed": 4, "versions": {"torch": "2.0"}})
    write(bare, "results.json", {"seed": 4, "test": TEST})
    write(bare, "names.json", {"model": NAMES, "bag of words": NAMES})
    write(bare, "baselines.json", BASELINES)
    write(bare, "evaluation.json", evaluation("texts.csv"))
    (bare / "history.jsonl").write_text('{"step": 1, "ce": 0.5}\n{"step": 2, "ce": 0.4}\n{"step": 3, "c')
    return bare
