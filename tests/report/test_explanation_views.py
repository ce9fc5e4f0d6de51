import builtins
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from lexical_sae.report.charts.waterfall import NAMES, WIDTH, waterfall
from lexical_sae.report.explanation.html import explanation_html
from lexical_sae.report.explanation.limits import limits
from lexical_sae.report.explanation.shown import ShownExplanations
from lexical_sae.report.explanation.steps import listing
from tests.report.explanations import CONTROLS, HIDDEN, NASTY, explanation, literal_explanation, named_explanation, word

SVG = "{http://www.w3.org/2000/svg}"


class Read(HTMLParser):
    """What a browser would make of a piece of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags, self.attributes, self.texts = set(), set(), []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.texts.append(data)


@pytest.mark.parametrize("nasty", NASTY, ids=range(len(NASTY)))
def test_strings_from_outside_stay_text_in_html_and_svg(nasty):
    plain, made = Read(explanation_html(explanation())), Read(explanation_html(named_explanation(nasty)))
    assert made.tags <= plain.tags
    assert made.attributes <= plain.attributes
    assert nasty in made.texts
    drawn = ElementTree.fromstring(waterfall(named_explanation(nasty)))
    kinds = {element.tag for element in ElementTree.fromstring(waterfall(explanation())).iter()}
    assert {element.tag for element in drawn.iter()} <= kinds


@pytest.mark.parametrize("hidden", HIDDEN, ids=range(len(HIDDEN)))
def test_characters_that_no_html_file_holds_are_replaced_in_a_cell(hidden):
    html = explanation_html(named_explanation(hidden)).encode("utf-8").decode("utf-8")
    assert not set(hidden) & CONTROLS & set(html)
    assert html.count("\N{REPLACEMENT CHARACTER}") >= 5


def test_html_has_no_script_and_nothing_from_elsewhere():
    html = explanation_html(explanation())
    assert "script" not in html
    assert not re.search(r"https?:|src=|url\(|@import", html)


def test_html_tells_words_effects_sum_and_limits():
    told = " ".join(" ".join(Read(explanation_html(explanation(), top=3)).texts).split())
    for expected in (
        "positive 93%",
        "word0 +10.00 text -9.50 word1",
        "word1 -9.00 text +9.50",
        "the contribution of each word to the logit",
        "3 other words for +12.00",
        "bias (this input) +0.25",
        "sum +5.25",
        "a limit",
    ):
        assert expected in told
    assert "word3" not in told


def test_html_keeps_the_text_and_shows_signs_without_colour():
    html = explanation_html(explanation())
    (shown,) = re.findall(r'<p [^>]*dir="auto">(.*?)</p>', html, re.S)
    assert re.sub("<[^>]*>", "", shown) == "a text here"
    assert re.search(r'title="-2.00"[^>]*dotted[^>]*>a<', shown)
    assert re.search(r'title="\+4.00"[^>]*solid[^>]*>text<', shown)


def bars(svg: str):
    found = ElementTree.fromstring(svg).iter(f"{SVG}rect")
    return [(b.get("class"), float(b.get("x", 0)), float(b.get("width"))) for b in found][1:]


@pytest.mark.parametrize("first", [0, 1], ids=["up", "down"])
def test_each_bar_begins_where_the_last_ended_and_the_decision_ends_there(first):
    words = tuple(word(i) for i in range(first, 10))
    drawn = bars(waterfall(explanation(words=words), top=4))
    amounts = [w.contribution for w in words[:4]]
    assert [kind for kind, *_ in drawn[:4]] == ["for" if amount > 0 else "against" for amount in amounts]
    kind, left, width = drawn[0]
    zero = level = left if kind == "for" else left + width
    for kind, left, width in drawn[:-1]:
        start, end = (left, left + width) if kind == "for" else (left + width, left)
        assert start == pytest.approx(level, abs=0.3)
        level = end
    kind, left, width = drawn[-1]
    assert kind == "sum"
    assert sorted([left, left + width]) == pytest.approx(sorted([zero, level]), abs=0.3)


def test_all_bars_lie_inside_the_picture_even_below_zero():
    for words in (tuple(word(i) for i in (1, 3)), (), (word(0, "w" * 500),)):
        svg = waterfall(explanation(words=words))
        assert all(left >= NAMES and left + width <= WIDTH for _, left, width in bars(svg))


def test_an_explanation_shows_itself():
    why = explanation()
    assert why._repr_html_() == explanation_html(why)
    assert why.svg()._repr_svg_() == why.svg() == waterfall(why)
    printed = str(why)
    assert "word0" in printed
    assert "\x1b" not in printed


def test_a_frame_has_a_row_for_each_word():
    frame = explanation().to_frame()
    assert list(frame["word"]) == [f"word{i}" for i in range(10)]
    assert list(frame["contribution"])[:2] == [10.0, -9.0]
    assert {"activation", "start", "end", "is_expansion", "if_removed", "region_changed"} <= set(frame.columns)
    assert {"kind", "label_if_removed", "default", "cause"} <= set(frame.columns)
    assert list(explanation(words=()).to_frame().columns) == list(frame.columns)


def test_a_frame_without_pandas_names_the_extra(monkeypatch):
    real = builtins.__import__

    def without_pandas(name, *rest):
        if name == "pandas":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(ImportError, match=r"lexical-sae\[frames\]"):
        explanation().to_frame()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ["+0.25, 0% of all", "+3.00 comes from the text as a whole", "1 of 10 single", "up to 0.50"]),
        ({"tokens_cut": 12}, ["12 tokens at the end were not read"]),
        ({"method": "path"}, ["the decision on the empty text", "1 of 10 single removals"]),
        (
            {"method": "path", "words": (word(0, region_changed=False),)},
            ["0 of 1 single removals", "up to 0.50, and by more than 10 % for none"],
        ),
        (
            {"words": (word(0), word(1, if_removed=4.0))},
            ["1 of 2 single", "up to 5.00, and by more than 10 % for 1 (*)"],
        ),
        ({"method": "leave_one_out"}, ["do not add up to the decision: +0.25"]),
        ({"words": (word(0, region_changed=False),)}, ["No single removal switches a hidden unit", "+0.25, 2%"]),
        ({"words": (word(0, if_removed=None, region_changed=None),)}, ["was not computed"]),
    ],
    ids=["default", "cut", "path", "path without switches", "marked", "removal", "same", "unasked"],
)
def test_limits_tell_what_is_not_explained(changes, said):
    told = " ".join(limits(explanation(**changes)))
    assert all(sentence in told for sentence in said), told
    assert "not read" in told or not changes.get("tokens_cut")


def test_limits_claim_nothing_that_was_not_found():
    told = " ".join(limits(explanation(words=(), whole_text=0.0, method="leave_one_out")))
    assert not any(phrase in told for phrase in ("not read", "as a whole", "hidden unit", "How strong"))


def test_words_that_can_open_nothing_are_named_once_and_not_all():
    told = limits(explanation(), ["mawkish", "treacly", "mawkish"])[0]
    assert 'cuts up "mawkish", "treacly", and the model has no feature' in told
    many = limits(explanation(), [f"w{i}" for i in range(7)])[0]
    assert '"w4" and 2 more, and' in many
    assert "w5" not in many
    assert not any("cuts up" in line for line in limits(explanation()))


def test_pieces_alone_are_a_row_and_not_the_bias_alone():
    pieces = tuple(replace(word(i), kind="piece") for i in range(3))
    why = explanation(words=pieces)
    for shown in (why, why.listed()):
        assert listing(shown, 8).words == ()
        assert not listing(shown, 8).is_bias_alone
        assert "3 pieces and symbols" in str(shown)
        assert "no word is active" not in str(shown)
        assert "3 pieces and symbols" in shown._repr_html_()
        assert bars(shown.svg()) == bars(shown.listed().svg())
    assert listing(explanation(words=()), 8).is_bias_alone
    named = listing(replace(why, all_tokens=True), 8)
    assert named.words == pieces
    assert [row.name for row in named.rest] == ["bias (this input)"]


def test_a_cell_without_shifts_has_no_columns_for_them():
    shifted = literal_explanation()
    words = tuple(replace(word, default=word.contribution, cause=None) for word in shifted.words)
    cell = explanation_html(replace(shifted, words=words))
    assert "bad" in cell
    assert not any(told in cell for told in ("default", "context", "if removed"))


def test_a_cell_of_literal_words_shows_shifts_and_causes():
    cell = explanation_html(literal_explanation())
    struck = re.findall(r"line-through;[^>]*>([^<]*)</span> <small[^>]*>([^<]*)<", cell)
    assert struck == [("bad", "(↺ because of “not”)")]
    for told in ("default", "context", "+2.25 reversed by “not”", "+1.00 stronger", "-0.25 weaker"):
        assert told in cell
    assert not any(told in cell for told in ("if removed", "activated by"))


@pytest.mark.parametrize("nasty", NASTY, ids=range(len(NASTY)))
def test_a_cause_from_outside_stays_text_in_a_cell(nasty):
    plain, made = Read(explanation_html(literal_explanation())), Read(explanation_html(literal_explanation(nasty)))
    assert made.tags <= plain.tags
    assert made.attributes <= plain.attributes
    assert f"(↺ because of “{nasty}”)" in made.texts


def test_a_list_of_explanations_is_shown_as_html_in_a_notebook():
    some = ShownExplanations([explanation(), explanation()])
    assert some._repr_html_().count("<table") == 2
    many = ShownExplanations([explanation()] * 23)
    assert many._repr_html_().count("<table") == 20
    assert "and 3 more" in many._repr_html_()
    assert some == [explanation(), explanation()]
    assert str(some).count("contribution") == 2


def test_the_runner_up_is_shown_only_where_there_are_many_labels():
    five = (("sports", 0.22), ("world", 0.61), ("business", 0.1), ("science", 0.04), ("health", 0.03))
    many = explanation(label="world", target="world", probability=0.61, probabilities=five)
    assert many.confidence == "61%, then sports 22%"
    assert many.runner_up == ("sports", 0.22)
    assert "then sports 22%" in many._repr_html_()
    assert "then" not in explanation(probabilities=five[:4]).confidence
    sure = (("world", 0.99), ("sports", 0.004), ("business", 0.003), ("science", 0.002), ("health", 0.001))
    assert explanation(probability=0.99, probabilities=sure).confidence == "99%"
