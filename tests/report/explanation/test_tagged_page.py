import re
from dataclasses import replace

from lexical_sae.report.explanation.tagged_page import ShownSentence, tagging_page
from tests.report.explanations import NASTY as ALL_NASTY
from tests.report.explanations import explanation
from tests.report.tagging_pages import PICTURE, full_tagging_page, run_parts, said, scores

NASTY = ALL_NASTY[0]
SAID, TEST = said(NASTY), scores(NASTY)


def sections(page):
    return re.findall(r'<section id="(\w+)">', page)


def test_a_page_of_sentences_alone_has_no_sections_of_a_run():
    page = tagging_page("Names", [ShownSentence(SAID)], ["LOC"])
    assert sections(page) == []
    assert "Scores" not in page
    assert "solid line" not in page
    assert '<span class="entity c0">Oslo<small>LOC</small></span>' in page


def test_whatever_a_run_holds_is_shown_and_nothing_of_it_is_interpreted():
    page = full_tagging_page(f"{NASTY}\x1b[31m")
    assert sections(page) == ["faithfulness", "training", "shapes", "settings", "missing"]
    assert "encoder reads them" not in page
    told = replace(run_parts(NASTY), encoder_gets_shapes=True)
    assert "encoder reads them" in tagging_page("Names", [ShownSentence(SAID)], ["LOC"], run=told)
    assert NASTY not in page
    assert "<script" not in page
    assert "\x1b" not in page
    for told in (
        "66.67%",
        "Mean of 2 seeds",
        "Are its explanations true?",
        "97%",
        "two letters or more",
        "Missed:",
        PICTURE.address,
    ):
        assert told in page


def test_the_words_behind_an_entity_are_marked_and_sum_to_its_tag():
    page = tagging_page("Names", [ShownSentence(SAID, [explanation()])], ["LOC"])
    assert '<mark class="against t3" title="-2.00">a</mark>' in page
    assert '<mark class="for t5" title="+4.00">text</mark>' in page
    assert "solid line" in page
    (why,) = re.findall(r"<details><summary>Why Oslo is LOC</summary>(.*?)</details>", page, re.DOTALL)
    told = " ".join(re.sub("<[^>]*>", " ", why).split())
    assert "word7 text -3.00" in told
    assert "word8" not in told
    assert f"decision {explanation().explained:+.2f}" in told
    assert why.count('src="data:image/svg+xml') == 1


def test_without_sentences_there_is_no_heading_for_them():
    assert "<h2>Sentences</h2>" not in tagging_page("Names", [], ["LOC"], test=TEST)
    assert "<h2>Sentences</h2>" in tagging_page("Names", [ShownSentence(SAID)], ["LOC"], test=TEST)
