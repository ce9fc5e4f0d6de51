"""The code of the pages on Python runs as it is written, one block after the other, on a tiny encoder."""

import re
from pathlib import Path

import pytest

from lexical_sae.circuits.objective import OTHER_TERMS
from lexical_sae.sklearn.estimator import LexicalEstimator
from tests import tiny

DOCS = Path(__file__).parent.parent / "docs"
WARM = ["a warm and funny film", "a very good movie", "the acting was wonderful", "a great plot and happy people"]
DULL = ["a dull plot", "a very bad movie", "the acting was awful", "a boring plot and terrible people"]


@pytest.fixture
def names(tmp_path, monkeypatch):
    encoder = str(tiny.saved_encoder(tmp_path / "encoder"))
    monkeypatch.setattr(LexicalEstimator, "_encoder", lambda _: encoder)
    texts = [f"{text} {more}" for texts in (WARM, DULL) for text in texts for more in ("", ".", "!", "film", "again")]
    return {
        "texts": texts,
        "labels": ["positive"] * 20 + ["negative"] * 20,
        "sentences": [["Acme", word, "to", place] for word in tiny.WORDS[:12] for place in ("Oslo", "Rome")],
        "tags": [["B-ORG", "O", "O", "B-LOC"]] * 24,
        "folder": tmp_path,
    }


def run_blocks(page, names):
    """How many blocks of Python a page has; all are run, in order."""
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), re.M | re.S)
    for number, block in enumerate(blocks):
        exec(compile(block, f"{page}, block {number + 1}", "exec"), names)
    return len(blocks)


def test_every_block_on_extending_runs(names, monkeypatch, capsys):
    monkeypatch.setattr(OTHER_TERMS, "configs", {})
    assert run_blocks("extending.md", names) >= 2
    assert list(OTHER_TERMS.configs) == ["mean_square"]
    assert "epoch 1: " in capsys.readouterr().out


def test_every_block_of_the_page_runs(names):
    assert run_blocks("python.md", names) >= 7
    assert names["whys"][0].contrast == "negative"
    assert "(" in names["whys"][0].sentence()
    assert names["again"].predict(names["texts"][:2]).tolist() == ["positive", "positive"]
    assert "film" not in {word.word for word in names["without"].explain(names["texts"][0]).words}
    assert (names["folder"] / "to_correct.csv").is_file()
