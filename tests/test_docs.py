import importlib
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def test_configuration_page_is_what_the_schema_says():
    page = runpy.run_path(str(ROOT / "tools" / "config_docs.py"))["render"]()
    assert (ROOT / "docs" / "configuration.md").read_text() == page, "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    missing = [link for link in links if not (page.parent / link).exists()]
    assert missing == []


def test_readme_names_only_make_targets_that_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = set(re.findall(r"`make ([a-z-]+)`|^make ([a-z-]+)", (ROOT / "README.md").read_text(), re.M))
    assert {a or b for a, b in named} <= targets
    assert {a or b for a, b in named} >= {"quickstart", "test"}


def test_every_new_home_in_the_seed_map_imports():
    rows = re.findall(r"^\| `([\w.]+)` \| `([\w.]+)` \|", (ROOT / "docs" / "seed-map.md").read_text(), re.M)
    assert len(rows) >= 7
    for earlier, now in rows:
        assert _resolves(now), f"{now} does not import"
        assert not _resolves(earlier), f"{earlier} imports: take it off the page"


EARLIER_NAMES = (ROOT / "tests" / "earlier_names.txt").read_text().split()


@pytest.mark.parametrize("name", EARLIER_NAMES)
def test_every_earlier_name_is_there_or_in_the_seed_map(name):
    is_there = (ROOT / name).is_file() if "/" in name else _resolves(name)
    assert is_there or re.search(rf"\| `{re.escape(name)}[`:( ]", (ROOT / "docs" / "seed-map.md").read_text())


def _resolves(name: str) -> bool:
    module, _, attribute = name.rpartition(".")
    try:
        importlib.import_module(name)
        return True
    except ImportError:
        pass
    try:
        return hasattr(importlib.import_module(module), attribute)
    except ImportError:
        return False
