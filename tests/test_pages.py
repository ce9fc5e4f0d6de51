"""Code on the pages: Python runs on tiny models, commands are what the command line takes, YAML is what settings take.

The blocks of docs/python.md and docs/extending.md run in test_python_page, those of docs/scale.md in
scale/test_scale_page.
"""

import importlib.util
import re
import shlex
import tomllib
from pathlib import Path

import pandas as pd
import pytest
import typer
import yaml

from lexical_sae import cli
from lexical_sae.config.load import build_config
from lexical_sae.evaluation.explainers.benchmark import compare_explainers
from lexical_sae.evaluation.explainers.explainer import ArenaSettings
from lexical_sae.intervene.lexicon import Lexicon
from lexical_sae.models import lexical_sae
from lexical_sae.models.persistence import save_pretrained
from lexical_sae.utils.progress import silent
from tests import tiny
from tests.data import folders
from tests.literal import TEXTS, literal_model

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md")), *ROOT.glob("examples/*.md")]
ELSEWHERE = {"python.md", "extending.md", "scale.md"}
LANGUAGES = {"python", "bash", "console", "yaml", "toml", "text"}
"""Each has a test below; what programs print is `text`."""
OTHER_PROGRAMS = {"pip", "source", "export", "python", "python3", "curl", "duckdb"}


def blocks(page: Path, *languages: str) -> list[str]:
    found = re.findall(r"^ *```(\w*)[^\n]*\n(.*?)^ *```", page.read_text(), re.M | re.S)
    return [code for language, code in found if language in languages]


def pages_with(*languages: str) -> list:
    return [pytest.param(page, id=page.name) for page in PAGES if blocks(page, *languages)]


def test_every_block_is_in_a_language_that_is_tried():
    found = {name for page in PAGES for name in re.findall(r"^ *```(\w+)", page.read_text(), re.M)}
    assert found == LANGUAGES


# Python


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder with the files that pages name."""
    place = tmp_path_factory.mktemp("pages")
    encoder = tiny.saved_encoder(place / "encoder")
    for name in ("results/quickstart/model", "results/sst2/model", "MODEL"):
        save_pretrained(literal_model(), place / name)
    save_pretrained(tiny.model(), place / "results/ner/conll2003/model")
    words = [word for word in tiny.WORDS if word.isalpha()]
    rows = [(f"{one} {other}", i % 5 + 1) for one in words[:8] for i, other in enumerate(words[8:16])]
    marks = [(text, i % 2, i % 3 % 2) for i, (text, _) in enumerate(rows)]
    (place / "experiments").mkdir()
    settings = {"data": {"dataset_name": "reviews.csv"}, "model": {"name": str(encoder)}, "training": {"max_epochs": 1}}
    (place / "experiments/verify.yaml").write_text(yaml.safe_dump(settings))
    for name in ("train", "test", "my_folder/train", "my_folder/dev", "my_folder/test", "reviews"):
        folders.write_csv(place / f"{name}.csv", [(f"{name} {text}", star) for text, star in rows], ("body", "stars"))
    folders.write_csv(place / "comments.csv", marks, ("text", "toxic", "threat"))
    (place / "sst2").mkdir()
    folders.sst2(place / "sst2")
    return place


@pytest.mark.parametrize("page", [page for page in pages_with("python") if page.values[0].name not in ELSEWHERE])
def test_every_block_of_python_runs(page, world, monkeypatch, capsys):
    monkeypatch.chdir(world)
    monkeypatch.setenv("LEXICAL_SAE_DATA", str(world))
    monkeypatch.setattr(lexical_sae, "load_backbone", lambda *_, **__: tiny.backbone())
    quick = ArenaSettings(texts=4, seeds=1, shapley_orders=3, with_captum=False, memory_texts=1)
    monkeypatch.setattr(compare_explainers, "__defaults__", ((), quick, silent))
    frame = pd.read_csv("reviews.csv")
    names = {"frame": frame, "others": pd.read_csv("test.csv"), "model": literal_model()}
    names |= {"texts": TEXTS + frame["body"].tolist(), "labels": ["a", "b", "a", "b", "c", *frame["stars"]]}
    for number, block in enumerate(blocks(page, "python")):
        exec(compile(block, f"{page.name}, block {number + 1}", "exec"), names)
    if page.name == "README.md":
        said = capsys.readouterr().out.splitlines()
        assert said[0].split()[0] in literal_model().labels["classify"]
        assert len(said) > 1


# Commands


def lines_of(page: Path) -> list[str]:
    """The commands of a page; those printed with what they answer begin with a dollar sign."""
    code = "\n".join(blocks(page, "bash", "console")).replace("\\\n", " ")
    typed = re.findall(r"^\$ (.*)", "\n".join(blocks(page, "text")), re.M)
    return [line for line in (*code.splitlines(), *typed) if line.strip() and not line.startswith("#")]


@pytest.mark.parametrize("page", pages_with("bash", "console", "text"))
def test_every_command_is_one_that_there_is(page):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    for line in lines_of(page):
        words = shlex.split(line, comments=True)
        if "lexical-sae" in words:
            takes(words[words.index("lexical-sae") + 1 :])
        elif words[0] == "make":
            assert words[1] in targets, line
        elif words[:2] == ["python", "-m"]:
            assert importlib.util.find_spec(words[2]), line
        else:
            assert words[0] in OTHER_PROGRAMS, line


def takes(words: list[str]) -> None:
    """The command line reads these words; nothing is done with them."""
    commands = typer.main.get_command(cli.app)
    command = commands.get_command(None, words[0])  # pyright: ignore[reportAttributeAccessIssue]
    assert command is not None, f"no command {words[0]}"
    command.make_context(words[0], list(words[1:]))
    if "--config" in words:
        assert (ROOT / words[words.index("--config") + 1]).is_file(), words


def test_a_command_that_there_is_not_is_found():
    with pytest.raises(AssertionError, match="no command explian"):
        takes(["explian", "MODEL"])
    with pytest.raises(Exception, match="--textcolumn"):
        takes(["train", "a.csv", "--textcolumn", "body"])


# Settings


@pytest.mark.parametrize("page", pages_with("yaml"))
def test_every_block_of_yaml_is_read(page):
    for block in blocks(page, "yaml"):
        found = yaml.safe_load(block)
        # A list of words, or settings.
        assert Lexicon(**found) if "forbid" in found else build_config(found)


def test_the_entry_point_on_the_page_is_that_of_the_example():
    (block,) = blocks(ROOT / "docs" / "extending.md", "toml")
    example = tomllib.loads((ROOT / "examples" / "plugin" / "pyproject.toml").read_text())
    assert tomllib.loads(block)["project"]["entry-points"] == example["project"]["entry-points"]
