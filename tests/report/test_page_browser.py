"""The pages in a real browser, on a phone's width."""

import html
import json
import re
import shutil
import subprocess

import pytest

from lexical_sae.report import page as pages_module
from lexical_sae.report.classifier import ClassWord, classifier_html
from lexical_sae.report.explanation.html import explanation_html
from lexical_sae.report.page import page_html, page_style
from tests.report.explanations import NASTY, literal_explanation, named_explanation
from tests.report.pages import full_page
from tests.report.tagging_pages import full_tagging_page

BROWSER = shutil.which("chromium")
pytestmark = [pytest.mark.browser, pytest.mark.skipif(BROWSER is None, reason="needs chromium")]
QUIET = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync --hide-scrollbars --enable-logging=stderr --dump-dom""".split()  # noqa: SIM905
FRAME = '<iframe srcdoc="{page}" width="390" height="800" style="border: 0"></iframe>'
WRAPPER = """<!doctype html><meta charset="utf-8">{frames}<script>
onload = () => {{
    const seen = [...document.querySelectorAll("iframe")].map(frame => {{
        const page = frame.contentDocument;
        const texts = kind => [...page.querySelectorAll(kind)].map(element => element.innerText);
        const mark = page.querySelector("mark.for");
        return {{
            elements: [...page.querySelectorAll("*")].map(element => element.tagName),
            handlers: [...page.querySelectorAll("*")].flatMap(element => element.getAttributeNames())
                .filter(name => name.startsWith("on")),
            title: page.title,
            text: page.body.innerText,
            headings: texts("h1, h3"),
            words: texts("td.word"),
            files: [...page.querySelectorAll("#settings pre")].map(element => element.textContent),
            errors: texts("#missing li"),
            width: page.documentElement.scrollWidth,
            scrolling: [...page.querySelectorAll("figure, .scroll, [style*=overflow-x]")]
                .filter(e => !e.closest("details") && e.scrollWidth > e.clientWidth).length,
            pictures: [...page.images].map(image => image.naturalWidth),
            line: mark && frame.contentWindow.getComputedStyle(mark).borderBottomStyle,
            tint: mark && frame.contentWindow.getComputedStyle(mark).backgroundColor,
        }};
    }});
    document.documentElement.dataset.seen = JSON.stringify(seen);
}};
</script>"""
"""Shows pages as wide as a phone and notes what can be seen; each page is as it was written."""

WIDER = "letter-spacing: .1em"
"""As of a font whose letters are a sixth wider: which fonts there are is the machine's."""


def opened(page: str, folder) -> tuple[str, str]:
    """The document as the browser has it in the end, and what it complained about."""
    path = folder / "a page.html"
    path.write_text(page, encoding="utf-8")
    command = [BROWSER, *QUIET, f"--user-data-dir={folder / 'profile'}", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """What is seen of a report, of a tagger's and of a notebook cell, each ordinary, then full of nasty strings; then
    of an ordinary report and of cells in wider letters; and what the browser complained about."""
    names = ("ordinary", " ".join(NASTY))
    pages = [page_html(full_page(name)) for name in names]
    pages += [full_tagging_page(name) for name in names]
    pages += [explanation_html(named_explanation(name)) for name in names]
    with pytest.MonkeyPatch.context() as patch:
        wider = f"{page_style()}body {{ {WIDER}; }}"
        patch.setattr(pages_module, "page_style", lambda: wider)
        pages.append(page_html(full_page()))
    cells = [explanation_html(named_explanation("ordinary")), explanation_html(literal_explanation("ordinary"))]
    cells.append(classifier_html("ordinary", [("positive", [ClassWord("ordinary", 1.5, 1234)])] * 3, 10_000))
    pages += [f'<div style="{WIDER}">{cell}</div>' for cell in cells]
    frames = "".join(FRAME.format(page=html.escape(page)) for page in pages)
    document, complaints = opened(WRAPPER.format(frames=frames), tmp_path_factory.mktemp("browser"))
    (found,) = re.findall(r'data-seen="(.*?)"', document)
    return json.loads(html.unescape(found)), complaints


@pytest.fixture(scope="module")
def looked_at(everything):
    """The pages in the letters of this machine."""
    seen, complaints = everything
    return seen[:6], complaints


def test_every_string_shows_as_text_and_nothing_else_comes_of_it(looked_at):
    nasty = " ".join(NASTY)
    seen, complaints = looked_at
    assert complaints == ""
    for ordinary, made in zip(seen[::2], seen[1::2], strict=True):
        assert made["elements"] == ordinary["elements"]
        assert made["handlers"] == []
        assert made["text"].count(nasty) == ordinary["text"].count("ordinary") > 2
    assert [page["title"] for page in seen[1::2]] == [nasty, nasty, ""]


@pytest.mark.parametrize(
    ("place", "least"), [("headings", 4), ("words", 3), ("files", 1), ("errors", 1)], ids=lambda value: str(value)
)
def test_class_names_words_files_and_errors_are_among_them(looked_at, place, least):
    # Headings hold the folder's name, figures, class names and names of files; files hold the settings.
    nasty = " ".join(NASTY)
    assert sum(nasty in text for text in looked_at[0][1][place]) >= least


def test_pages_fit_a_phone_and_ordinary_ones_need_no_scrolling_sideways(looked_at):
    # But for wide tables that are folded away, in frames of their own.
    assert all(page["width"] <= 390 for page in looked_at[0])
    report, tagger, cell = looked_at[0][::2]
    assert (report["scrolling"], cell["scrolling"]) == (0, 0)
    assert tagger["scrolling"] <= 1, "the seven columns of the types, in some fonts"


def test_letters_a_sixth_wider_need_no_scrolling_sideways_either(everything):
    wider = everything[0][6:]
    assert [(page["width"], page["scrolling"]) for page in wider] == [(390, 0)] * 4


def test_pictures_are_drawn_and_words_are_tinted_and_underlined(looked_at):
    report, _, tagger, _, _, _ = looked_at[0]
    for page, pictures in ((report, 10), (tagger, 3)):
        assert len(page["pictures"]) == pictures
        assert all(page["pictures"])
        assert page["line"] == "solid"
        assert page["tint"].startswith("rgba(51, 102, 204,")


@pytest.mark.slow
def test_the_browser_refuses_another_style(tmp_path):
    _, complaints = opened(page_html(full_page()).replace("</style>", "/**/</style>"), tmp_path)
    assert "style" in complaints
