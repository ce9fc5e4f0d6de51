import pytest

from lexical_sae.report.explanation.html import explanation_html
from lexical_sae.report.explanation.terminal import explanation_panel
from lexical_sae.report.explanation.written import as_written
from lexical_sae.report.page import Example, Page, page_html
from tests.report.explanation.test_terminal import rendered
from tests.report.explanations import explanation, literal_explanation, word

TEXT = "Le paiement refusé isn't Film; it's"


def literal(name: str, written: str):
    start = TEXT.index(written)
    return word(0, name, start=start, end=start + len(written), is_expansion=False, default=1.0)


@pytest.mark.parametrize(
    ("name", "written", "expected"),
    [
        ("film", "Film", "film"),
        ("paiement", "paiement", "paiement"),
        ("refuse", "refusé", "refuse (refusé)"),
        ("n't", "isn't", "n't (isn't)"),
        ("it", "it's", "it"),
        ("s", "it's", "s (it's)"),
        ("film/films", "Film", "film/films"),
    ],
)
def test_a_literal_word_is_shown_as_its_text_writes_it(name, written, expected):
    assert as_written(literal(name, written), TEXT) == expected


def test_only_literal_words_stand_in_their_text():
    assert as_written(word(0, "humorous", start=0, end=2), TEXT) == "humorous"
    assert as_written(word(0, "film", default=1.0, start=None, end=None), TEXT) == "film"


@pytest.mark.parametrize(
    "view",
    [
        lambda why: rendered(explanation_panel(why), colour=None),
        explanation_html,
        lambda why: page_html(Page("x", examples=[Example(why)])),
    ],
    ids=["terminal", "cell", "page"],
)
def test_every_view_shows_it(view):
    shown = view(explanation(text=TEXT, words=(literal("refuse", "refusé"),), spans=()))
    assert "refuse (refusé)" in shown
    assert "bad (" not in view(literal_explanation()).replace("bad (↺", "")
