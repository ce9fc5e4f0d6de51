import re
from dataclasses import replace

from splade.data.tagged_sentence import TaggedSentence
from splade.report.page import Figures
from splade.report.picture import Picture
from splade.report.tagging_html import RunParts, ShownSentence, tagging_page
from tests.report.explanations import NASTY as ALL_NASTY
from tests.report.explanations import explanation

NASTY = ALL_NASTY[0]

COUNTS = {"precision": 1.0, "recall": 0.5, "f1": 2 / 3, "gold": 2, "predicted": 1, "correct": 1}
TEST = {
    "f1": 2 / 3,
    "types": {"LOC": COUNTS, NASTY: COUNTS},
    "token_accuracy": 0.9,
    "active_words": 31.4,
    "active_shapes": 1.5,
    "identity_error": 2e-7,
    "topk_per_position": [{"k": 5, "f1": 0.5, "active_words": 6.0}, {"k": 0, "f1": 2 / 3, "active_words": 31.4}],
    "sentences": 7,
    "words": 70,
}
SAID = TaggedSentence.of_words(["Oslo", "is", NASTY], ["B-LOC", "O", "O"])
GOLD = TaggedSentence.of_words(["Oslo", "is", NASTY], ["B-LOC", "O", "B-PER"])


def sections(page):
    return re.findall(r'<section id="(\w+)">', page)


def test_a_page_of_sentences_alone_has_no_sections_of_a_run():
    page = tagging_page("Names", [ShownSentence(SAID)], ["LOC"])
    assert sections(page) == []
    assert "Scores" not in page
    assert '<span class="entity c0">Oslo<small>LOC</small></span>' in page


def test_whatever_a_run_holds_is_shown_and_nothing_of_it_is_interpreted():
    picture = Picture("Cross-entropy", "<svg/>", f"fell {NASTY}")
    run = RunParts(
        about=NASTY,
        seeds=Figures("Mean of 2 seeds", [("entity F1", "90%", NASTY)]),
        evaluation=[Figures("Are its explanations true?", [("same sign", "97%", NASTY)])],
        curves=[picture],
        shapes=["all caps"],
        documents={NASTY: f"key: {NASTY}\x1b[31m"},
        missing=[NASTY],
    )
    lexicons = [
        {"type": "LOC", "positions": 3, "words": [{"word": NASTY, "kind": "word", "contribution": 1.0, "active": 1.0}]}
    ]
    shown = [ShownSentence(SAID, [explanation()], GOLD)]
    page = tagging_page(NASTY, shown, ["LOC", NASTY], notes=[NASTY], test=TEST, lexicons=lexicons, run=run)
    assert sections(page) == ["faithfulness", "training", "shapes", "settings", "missing"]
    assert "encoder is told" not in page
    assert "encoder is told" in tagging_page("Names", shown, ["LOC"], run=replace(run, encoder_is_told=True))
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
        picture.address,
    ):
        assert told in page


def test_without_sentences_there_is_no_heading_for_them():
    assert "<h2>Sentences</h2>" not in tagging_page("Names", [], ["LOC"], test=TEST)
    assert "<h2>Sentences</h2>" in tagging_page("Names", [ShownSentence(SAID)], ["LOC"], test=TEST)
