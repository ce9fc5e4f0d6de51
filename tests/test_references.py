"""The page of references and the sources that the code names agree."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CODE = ROOT / "lexical_sae"
ARXIV = re.compile(r"arXiv:\d{4}\.\d{4,5}")
WHO = re.compile(r"^[^\d]+\d{4}")
"""Authors and year, with which every source begins."""


def named_in(path: Path) -> set[str]:
    """Sources that a file names: authors and year of every `REFERENCE`, and every arXiv number."""
    text = path.read_text()
    found = set(ARXIV.findall(text))
    for node in ast.walk(ast.parse(text)):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "REFERENCE" for target in targets):
            found |= {
                WHO.match(source.strip())[0]
                for source in ast.literal_eval(node.value).split(";")
                if WHO.match(source.strip())
            }
    return found


def rows() -> list[tuple[str, list[str]]]:
    """Each row of the page that names files: the paper, and the files."""
    page = (ROOT / "docs" / "references.md").read_text()
    cells = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ") and "`" in line]
    return [(row[0], re.findall(r"`([\w/]+\.py)`", row[-1])) for row in cells if row[-1].endswith(".py`")]


# Data sets name their papers too; docs/data.md has those.
FILES = sorted(p for p in CODE.rglob("*.py") if "data" not in p.relative_to(CODE).parts and named_in(p))


def test_many_parts_name_a_source():
    assert len(FILES) > 20
    assert len(rows()) > 25


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CODE)))
def test_every_source_that_a_file_names_stands_beside_it_on_the_page(path):
    here = str(path.relative_to(CODE))
    papers = [paper for paper, files in rows() if here in files]
    missing = {source for source in named_in(path) if not any(source in paper for paper in papers)}
    assert missing == set(), f"add them to docs/references.md beside `{here}`"


@pytest.mark.parametrize(("paper", "files"), rows(), ids=lambda part: part if isinstance(part, str) else "")
def test_every_file_on_the_page_names_its_source(paper, files):
    who = WHO.match(paper)[0]
    for file in files:
        assert who in (CODE / file).read_text(), f"{file} does not name {who}"
