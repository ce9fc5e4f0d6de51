"""A page whose policy takes its own style sheet alone holds no other style: a browser would strip it."""

from html.parser import HTMLParser

import pytest

from lexical_sae.report.page import page_html
from lexical_sae.report.studies.concept_removal import study_html
from lexical_sae.report.tables import tables_html
from tests.report.pages import full_page
from tests.report.studies.test_concept_removal import RESULTS
from tests.report.tagging_pages import full_tagging_page
from tests.report.test_tables import PAGE

PAGES = {
    "report": lambda: page_html(full_page()),
    "tagger": full_tagging_page,
    "tables": lambda: tables_html(PAGE),
    "surgery": lambda: study_html("a study", RESULTS),
}


class Read(HTMLParser):
    """Names of a page's attributes, and its policy."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.policy = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.names |= {name for name, _ in attrs}
        if tag == "meta" and ("http-equiv", "Content-Security-Policy") in attrs:
            self.policy = dict(attrs)["content"]


@pytest.mark.parametrize("make", PAGES.values(), ids=PAGES)
def test_no_page_with_a_policy_has_a_style_in_an_element(make):
    page = Read(make())
    assert "style-src 'sha256-" in page.policy
    assert "style" not in page.names
