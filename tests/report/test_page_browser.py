"""The page in a real browser, on a phone's width."""

import html
import json
import re
import shutil
import subprocess

import pytest

from splade.report.page import page_html
from tests.report.explanations import NASTY
from tests.report.pages import full_page

BROWSER = shutil.which("chromium")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs chromium")
QUIET = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync --hide-scrollbars --enable-logging=stderr --dump-dom""".split()  # noqa: SIM905
WRAPPER = """<!doctype html><iframe srcdoc="{page}" width="400" height="800" style="border: 0"></iframe><script>
onload = () => {{
    const page = document.querySelector("iframe").contentDocument;
    document.documentElement.dataset.seen = JSON.stringify({{
        text: page.body.innerText,
        width: page.documentElement.scrollWidth,
        pictures: [...page.images].map(image => image.naturalWidth),
        line: getComputedStyle(page.querySelector("mark.for")).borderBottomStyle,
    }});
}};
</script>"""
"""Shows a page as wide as a phone and notes what can be seen; the page itself is as it was written."""


def opened(page: str, folder) -> tuple[str, str]:
    """The document as the browser has it in the end, and what it complained about."""
    path = folder / "a page.html"
    path.write_text(page, encoding="utf-8")
    command = [BROWSER, *QUIET, f"--user-data-dir={folder / 'profile'}", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


def test_every_string_shows_as_text_and_the_page_fits_a_phone(tmp_path):
    nasty = " ".join(NASTY)
    wrapped = WRAPPER.format(page=html.escape(page_html(full_page(nasty))))
    document, complaints = opened(wrapped, tmp_path)
    (found,) = re.findall(r'data-seen="(.*?)"', document)
    seen = json.loads(html.unescape(found))
    assert complaints == ""
    assert seen["text"].count(nasty) > 15
    assert seen["width"] <= 400
    assert len(seen["pictures"]) == 4
    assert all(seen["pictures"])
    assert seen["line"] == "solid"


@pytest.mark.slow
def test_the_browser_refuses_another_style(tmp_path):
    _, complaints = opened(page_html(full_page()).replace("</style>", "/**/</style>"), tmp_path)
    assert "style" in complaints
