"""One browser for all tests of pages."""

import shutil

import pytest

BROWSER = shutil.which("chromium")


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    if BROWSER is None:
        pytest.skip("needs chromium")
    with playwright.sync_playwright() as tools:
        opened = tools.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()
