import base64
import hashlib
import json
import re

import pytest

from lexical_sae.explorer import STATIC
from lexical_sae.explorer.page import bundled, page_html
from tests.report.explanations import NASTY


def models(text="ordinary"):
    return [{"name": text, "about": text, "address": text, "codes": {"kind": "table", "texts": {"text": [text]}}}]


def digest(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_policy_allows_this_style_and_this_script_and_nothing_else():
    html = page_html("a title", models())
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    (script,) = re.findall(r'<script type="module">(.*?)</script>', html, re.DOTALL)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy.split("; ") == [
        "default-src 'none'",
        f"style-src {digest(style)}",
        f"script-src {digest(script)}",
        "img-src data: blob:",
        "base-uri 'none'",
        "form-action 'none'",
    ]


@pytest.mark.parametrize("nasty", [*NASTY, "</script><script>alert(1)</script>", "\u2028\u2029"], ids=str)
def test_strings_stay_data(nasty):
    plain, made = page_html("ordinary", models()), page_html(nasty, models(nasty))
    tags = re.compile(r"<[a-z/!][^>]*>", re.I)
    assert tags.findall(made[: made.index("<style")])[:-1] == tags.findall(plain[: plain.index("<style")])[:-1]
    assert made.count("<script") == plain.count("<script") == 2
    (data,) = re.findall(r'id="payload">(.*?)</script>', made, re.DOTALL)
    assert not set("<>&\u2028\u2029") & set(data)
    assert json.loads(data) == {"title": nasty, "models": models(nasty)}


def test_the_same_data_gives_the_same_page():
    assert page_html("a", models()) == page_html("a", models()) != page_html("b", models())


def test_every_module_is_in_the_page_once_after_those_that_it_imports():
    script = bundled()
    order = re.findall(r"^const m_(\w+) = \(\(\) => \{$", script, re.M)
    assert sorted([*order, "main"]) == sorted(path.stem for path in STATIC.glob("*.js"))
    assert not re.search(r"^(import|export) ", script, re.M)
    for name in order:
        used = re.findall(r'from "\./(\w+)\.js"', (STATIC / f"{name}.js").read_text().split("/**", 1)[1])
        assert all(order.index(other) < order.index(name) for other in used)


def test_no_module_reads_a_string_as_markup_or_code():
    for path in STATIC.glob("*.js"):
        source = path.read_text()
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|https?://", source
        )
