import base64
import hashlib
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.report.explanation.html import TINTS, tint
from lexical_sae.report.page import Confusion, Example, Figures, Lead, Page, _Reach, page_html
from tests.report.explanations import CONTROLS, HIDDEN, NASTY, explanation, literal_explanation, word
from tests.report.pages import full_page, lexicon_word


class Read(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.texts.append(data)

    def values(self, name: str) -> list[str]:
        return [value or "" for key, value in self.attributes if key == name]

    @property
    def told(self) -> str:
        return " ".join(" ".join(self.texts).split())


def drawn(address: str) -> ElementTree.Element:
    return ElementTree.fromstring(base64.b64decode(address.removeprefix("data:image/svg+xml;base64,")))


@pytest.mark.parametrize("nasty", NASTY, ids=range(len(NASTY)))
def test_strings_from_outside_stay_text_wherever_they_stand(nasty):
    plain, made = Read(page_html(full_page())), Read(page_html(full_page(nasty)))
    assert made.tags == plain.tags
    assert [name for name, _ in made.attributes] == [name for name, _ in plain.attributes]
    assert made.told.count(nasty) == plain.told.count("ordinary") > 15
    kinds = [[e.tag for e in drawn(address).iter()] for address in plain.values("src")]
    assert [[e.tag for e in drawn(address).iter()] for address in made.values("src")] == kinds


@pytest.mark.parametrize("hidden", HIDDEN, ids=range(len(HIDDEN)))
def test_characters_that_no_html_file_holds_are_replaced(hidden):
    html = page_html(full_page(hidden)).encode("utf-8").decode("utf-8")
    assert not set(hidden) & CONTROLS & set(html)
    assert "\N{REPLACEMENT CHARACTER}" in html


@pytest.mark.parametrize("kept", ["👩\u200d💻", "שלום", "e\u0301", "a\tb\nc"], ids=["joined", "rtl", "nfd", "blanks"])
def test_all_other_characters_are_kept(kept):
    assert kept in page_html(full_page(kept))


def test_the_policy_allows_this_style_and_pictures_of_the_page_and_nothing_else():
    html = page_html(full_page())
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = next(value for value in Read(html).values("content") if "default-src" in value)
    assert policy.split("; ") == [
        "default-src 'none'",
        f"style-src 'sha256-{digest}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]


def test_nothing_runs_and_nothing_comes_from_elsewhere():
    html = page_html(full_page())
    page = Read(html)
    assert not {"script", "link", "iframe", "object", "base", "form"} & set(page.tags)
    assert not {name for name, _ in page.attributes if name.startswith("on") or name in ("style", "srcset")}
    assert all(address.startswith("data:image/svg+xml;base64,") for address in page.values("src"))
    assert [address for address in page.values("href") if not address.startswith("#")] == [
        "explorer.html",
        "a%20study.html",
    ]
    assert not re.search(r"https?:|url\(|@import", html)


def test_links_of_the_page_lead_to_its_sections():
    page = Read(page_html(full_page()))
    links = [address for address in page.values("href") if address.startswith("#")]
    assert [f"#{name}" for name in page.values("id")] == links[: len(page.values("id"))]


@pytest.mark.parametrize(
    ("change", "section"),
    [
        ({"lead": None}, "lead"),
        ({"headline": None, "figures": ()}, "figures"),
        ({"evaluation": None}, "evaluation"),
        ({"curves": ()}, "training"),
        ({"lexicon": None}, "lexicons"),
        ({"examples": ()}, "texts"),
        ({"frontier": None}, "frontier"),
        ({"studies": ()}, "studies"),
        ({"documents": None}, "settings"),
        ({"missing": ()}, "missing"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_section_without_data_is_left_out_and_the_others_stay(change, section):
    whole = Read(page_html(full_page())).values("id")
    assert section in whole
    assert Read(page_html(replace(full_page(), **change))).values("id") == [name for name in whole if name != section]


def test_a_page_may_hold_nothing_but_a_title():
    page = Read(page_html(Page("a title")))
    assert page.values("id") == []
    assert page.told.endswith("a title")


def test_the_same_data_gives_the_same_page():
    assert page_html(full_page("a")) == page_html(full_page("a")) != page_html(full_page("b"))


def test_figures_are_shown_with_their_remarks():
    page = Page("t", headline=Figures("on 9 texts", [("accuracy", "86.9%", "majority 50.9%")]))
    assert "on 9 texts accuracy 86.9% majority 50.9%" in Read(page_html(page)).told


def test_a_text_is_shown_with_a_waterfall_that_ends_at_the_decision():
    why = explanation()
    page = Read(page_html(Page("t", examples=[Example(why)])))
    (address,) = page.values("src")
    texts = [element.text for element in drawn(address).iter() if element.tag.endswith("}text")]
    assert texts[-2:] == ["decision", f"{why.explained:+.2f}"]
    assert page.values("alt")[0].endswith(f"together {why.explained:+.2f}")


def test_removals_are_told_exactly_with_marks_and_changed_decisions():
    words = (word(0, if_removed=-5.0), word(1, label_if_removed="negative"))
    told = Read(page_html(Page("t", examples=[Example(explanation(words=words))]))).told
    assert "word0 text +10.00 -5.00* stays word1 text -9.00 +9.50 negative" in told
    assert "The removal of one word alone changes the decision: word1." in told


def test_where_every_decision_stays_one_sentence_says_so():
    told = Read(page_html(Page("t", examples=[Example(explanation())]))).told
    assert "word0 text +10.00 -9.50 word1" in told
    assert "No single removal changes the decision." in told
    assert "stays" not in told


def test_the_table_of_a_text_sums_to_the_decision():
    why = explanation(words=tuple(word(i) for i in range(15)))
    told = Read(page_html(Page("t", examples=[Example(why)]))).told
    assert "word11 text +1.00 " in told
    assert f"for +3.00 2 other words against -6.00 bias (this input) +0.25 decision {why.explained:+.2f}" in told


def test_what_was_not_asked_for_is_not_shown():
    bare = word(0, start=None, end=None, is_expansion=None, if_removed=None, region_changed=None, label_if_removed=None)
    told = Read(page_html(Page("t", examples=[Example(explanation(words=(bare,), spans=None))]))).told
    assert "activated by" not in told
    assert "if removed" not in told.replace("“Without it”", "")
    assert "decision changes" not in told


def test_a_text_without_active_words_says_so():
    assert "No word is active" in page_html(Page("t", examples=[Example(explanation(words=()))]))


def test_words_of_the_text_are_marked_by_side_and_strength():
    html = page_html(Page("t", examples=[Example(explanation())]))
    assert '<mark class="against t3" title="-2.00">a</mark>' in html
    assert '<mark class="for t5" title="+4.00">text</mark>' in html


@pytest.mark.parametrize(
    ("labelled", "told"), [("positive", "✓ right"), ("negative", "✗ wrong: labelled negative"), (None, None)]
)
def test_right_and_wrong_decisions_are_told_apart(labelled, told):
    html = page_html(Page("t", examples=[Example(explanation(), labelled)]))
    assert [mark for mark in ("✓ right", "✗ wrong: labelled negative") if mark in html] == ([told] if told else [])


def test_words_of_a_class_are_shown_with_intervals():
    words = [lexicon_word("warm", 0.5, is_rare=True), lexicon_word("dull", 0.2, low=None, high=None)]
    own = {"label": "positive", "texts": 7, "contributes_to": words, "contributes_against": []}
    pieces = {"count": 3, "contribution": -0.125}
    classes = [{**own, "pieces": pieces}, {**own, "label": "negative", "pieces": None}]
    told = Read(page_html(Page("t", lexicon={"texts": 9, "classes": classes}))).told
    assert told.count("3 pieces and symbols that are no words: -0.125 together") == 1
    assert "warm (rare) +0.500 +0.400 to +0.600 25.0%" in told
    assert "dull +0.200 – 25.0%" in told
    assert "contributes against it no word" in told


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)), max_size=5), st.sampled_from([1, -1]))
def test_bars_and_intervals_stay_inside_and_in_order(words, side):
    made = [lexicon_word("w", side * mean, low=side * mean - width, high=side * mean + width) for mean, width in words]
    reach = _Reach.of({"classes": [{"contributes_to": made, "contributes_against": []}]})
    for each in made:
        ends = sorted(reach(each[end], side) for end in ("low", "high"))
        assert 0 <= ends[0] <= reach(each["contribution"], side) <= ends[1] <= 100


@given(st.floats(0, 1), st.floats(0, 1))
def test_stronger_words_are_never_paler(one, other):
    assert 0 <= tint(min(one, other)) <= tint(max(one, other)) <= TINTS
    assert (tint(0.0), tint(1.0)) == (0, TINTS)


def test_the_lead_stands_before_all_figures_and_tells_words_texts_and_accuracies_in_this_order():
    told = Read(page_html(full_page("ordinary"))).told
    parts = ["+1.50", "Weight from the training data alone: ordinary .", "because of “ordinary”", "not proved"]
    places = [told.index(part) for part in parts]
    assert places == sorted(places)
    assert places[-1] < told.index("Figures", places[0])


def test_a_report_shows_one_accuracy():
    headline = Figures("on 9 texts", [("accuracy", "86.9%", "majority 50.9%"), ("active words", "7", "per text")])
    lead = Lead([("a", [])], accuracies=[("accuracy", "86.9%", "on 9 test texts")])
    assert page_html(Page("x", lead=lead, headline=headline)).count("86.9%") == 1
    assert page_html(Page("x", headline=headline)).count("86.9%") == 1


def test_the_confusion_matrix_follows_the_lead_and_all_figures_are_folded_behind_it():
    html = page_html(full_page("ordinary"))
    cells = re.findall(r'<td class="(for|against) t(\d)">(\d)</td>', html)
    assert cells == [("for", "5", "8"), ("against", "5", "2"), ("against", "3", "1"), ("for", "5", "9")]
    assert html.index("Right and wrong") < html.index('<details class="part">')
    assert html.count('<details class="part">') == 5
    assert '<details class="part" open>' in page_html(replace(full_page(), lead=None))


def test_of_many_labels_the_most_confused_are_shown():
    counts = [[int(a == b or (a, b) == (19, 3)) for b in range(20)] for a in range(20)]
    shown = Confusion([f"label{a}" for a in range(20)], counts)
    assert len(shown.places) == 12
    assert {3, 19} <= set(shown.places)
    page = page_html(Page("x", lead=Lead([("a", [])], confusion=shown)))
    assert "The 12 labels that are confused most, of 20." in page


def test_a_lead_without_words_from_the_data_says_nothing_of_them():
    assert "training data alone" not in page_html(Page("x", lead=Lead([("a", [])])))


def test_a_literal_text_shows_defaults_shifts_and_no_removals():
    page = page_html(Page("x", examples=[Example(literal_explanation())]))
    assert re.findall(r"<mark[^>]*><s>(bad)</s></mark> <small class=.shift.>([^<]*)<", page) == [
        ("bad", "(↺ because of “not”)")
    ]
    told = Read(page).told
    for part in ("contribution default context", "+0.75 -1.50 +2.25 reversed by “not”"):
        assert part in told
    assert "If removed" not in told
    assert "What is not explained" not in told
    still = tuple(replace(word, default=word.contribution, cause=None) for word in literal_explanation().words)
    unshifted = Read(page_html(Page("x", examples=[Example(replace(literal_explanation(), words=still))]))).told
    assert not any(part in unshifted for part in ("contribution default", "“Default”", "If removed"))
    other = Read(page_html(Page("x", examples=[Example(explanation())]))).told
    assert "If removed" in other
    assert "Default" not in other
