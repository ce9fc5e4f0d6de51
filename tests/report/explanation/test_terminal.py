import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from lexical_sae.explanation import SpanContribution
from lexical_sae.inference.unusual import NO_WORDS
from lexical_sae.report.explanation.terminal import explanation_panel, highlighted_text
from tests.report.explanations import explanation, literal_explanation, word


def rendered(thing, width=100, colour="truecolor") -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=colour is not None, color_system=colour)
    console.print(thing)
    return console.file.getvalue()


def test_panel_shows_label_words_remainder_and_bias():
    output = rendered(explanation_panel(explanation(), top=3), colour=None)
    output = re.sub(" +", " ", output)
    for expected in (
        "positive 93%",
        "word0 +10.00",
        "word1 -9.00",
        "3 other words for +12.00",
        "4 other words against -16.00",
        "bias (this input) +0.25",
        "sum +5.25",
        "a limit",
        "in the text: text +4.00, a -2.00",
    ):
        assert expected in output
    assert "word3" not in output


def test_without_it_tells_the_change_the_mark_and_the_new_label():
    words = (word(0, if_removed=-5.0), word(1, label_if_removed="negative"))
    lines = rendered(explanation_panel(explanation(words=words)), colour=None).splitlines()
    first, second = (next(line for line in lines if name in line) for name in ("word0", "word1"))
    assert "-5.00*" in first
    assert "negative" not in first
    assert "+9.50 negative" in second
    assert "+9.50*" not in second


def test_a_word_that_was_read_in_names_the_word_that_it_was_read_from():
    words = (word(0), word(1, is_expansion=False), word(2, start=None, end=None))
    lines = rendered(explanation_panel(explanation(words=words)), colour=None).splitlines()
    by_name = {name: next(line for line in lines if name in line) for name in ("word0", "word1", "word2")}
    assert "text" in by_name["word0"]
    assert "text" not in by_name["word1"]
    assert "the whole text" in by_name["word2"]


def test_what_was_not_computed_has_no_column():
    bare = {"start": None, "end": None, "is_expansion": None, "if_removed": None, "region_changed": None}
    plain = explanation(words=(word(0, **bare, label_if_removed=None),), spans=None, whole_text=None)
    output = rendered(explanation_panel(plain), colour=None)
    assert "word0" in output
    assert not any(name in output for name in ("if removed", "activated by", "in the text"))


@pytest.mark.parametrize("width", [40, 50, 64, 72, 80, 200])
def test_words_and_numbers_are_whole_at_any_width(width):
    names = ["filmmakers", "hilarious", "humorous"]
    words = tuple(word(i, name, if_removed=-5.0, label_if_removed="negative") for i, name in enumerate(names))
    output = rendered(explanation_panel(explanation(words=words)), width, colour=None)
    lines = output.splitlines()
    assert all(len(line) <= width for line in lines)
    assert "…" not in output
    for i, name in enumerate(names):
        row = next(line for line in lines if name in line)
        assert f"{(-1) ** i * (10 - i):+.2f}" in row
        assert "-5.00*" in row
    assert ("█" in output) == (width >= 72)


def test_signs_in_the_text_do_not_hang_on_colour():
    output = rendered(highlighted_text(explanation()))
    assert "\x1b[3;4;31ma" in output
    assert "\x1b[1;3;32mtext" in output


def test_weak_words_are_not_marked_and_the_text_stays_whole():
    spans = (SpanContribution("a", 0, 1, 0.1), SpanContribution("text", 2, 6, 4.0))
    output = rendered(highlighted_text(explanation(spans=spans)))
    assert "32ma" not in output
    assert rendered(highlighted_text(explanation(spans=spans)), colour=None) == "a text here\n"


def test_bars_for_and_against_have_different_colours():
    output = rendered(explanation_panel(explanation(), top=2))
    assert "\x1b[32m█" in output
    assert "\x1b[31m█" in output


def test_a_question_other_than_the_default_is_told():
    assert "numbers speak" not in rendered(explanation_panel(explanation()), colour=None)
    contrast = explanation_panel(explanation(contrast="negative"))
    assert "contributions for positive, not negative" in rendered(contrast, colour=None)
    assert "contributions for negative" in rendered(explanation_panel(explanation(target="negative")), colour=None)


def test_a_text_without_words_still_shows():
    assert "no word is active: this is the bias alone" in rendered(explanation_panel(explanation(words=())))
    warned = explanation(words=(), warnings=(NO_WORDS,))
    assert "There is no word in this text" in rendered(explanation_panel(warned))
    assert "no word is active" not in rendered(explanation_panel(warned))


def test_a_wrong_prediction_is_marked():
    assert "labelled negative" in rendered(explanation_panel(explanation(), labelled="negative"))
    assert "labelled" not in rendered(explanation_panel(explanation(), labelled="positive"))


@pytest.mark.parametrize(
    "nasty",
    ["[red]markup[/red]", "\x1b[31mescape", "bell\x07", "tab\there", "]0;title\x07", "[/]"],
    ids=["markup", "escape", "bell", "tab", "title", "end"],
)
def test_text_from_outside_is_shown_and_never_obeyed(nasty):
    spans = (SpanContribution(nasty, 0, len(nasty), 1.0),)
    shown = explanation(
        text=nasty, label=nasty, words=(word(0, nasty, label_if_removed=nasty),), spans=spans, not_explained=(nasty,)
    )
    output = rendered(explanation_panel(shown))
    assert "\x07" not in output
    assert "\x1b[31mescape" not in output
    if nasty.startswith("[red]"):
        assert "[red]markup[/red]" in output


def test_punctuation_is_no_word_of_the_text_unless_all_tokens_are_asked_for():
    spans = (SpanContribution("warm", 0, 4, 2.0), SpanContribution(",", 4, 5, 3.0))
    said = [
        rendered(explanation_panel(explanation(spans=spans, all_tokens=flag)), colour=None) for flag in (False, True)
    ]
    assert "in the text: warm +2.00 " in said[0]
    assert "in the text: , +3.00, warm +2.00" in said[1]


def test_literal_words_have_default_context_and_cause():
    output = rendered(explanation_panel(literal_explanation()), colour=None)
    lines = output.splitlines()
    table = lines[next(i for i, line in enumerate(lines) if "contribution" in line) :]
    rows = {name: next(line for line in table if f" {name} " in line) for name in ("bad", "great", "fun", "plot")}
    assert all(name in output for name in ("contribution", "default", "context"))
    assert not any(name in output for name in ("if removed", "activated by", "says", "in the text"))
    for name, told in {
        "bad": ("+0.75", "-1.50", "+2.25 reversed by “not”"),
        "great": ("+2.00", "+1.00", "+1.00 stronger"),
        "fun": ("+0.25", "+0.50", "-0.25 weaker"),
    }.items():
        assert all(part in rows[name] for part in told), rows[name]
    assert not any(kind in rows["plot"] for kind in ("reversed", "stronger", "weaker"))


def test_without_shifts_the_columns_that_would_tell_of_them_are_left_out():
    shifted = literal_explanation()
    words = tuple(replace(word, default=word.contribution, cause=None) for word in shifted.words)
    output = rendered(explanation_panel(replace(shifted, words=words)), colour=None)
    assert "bad" in output
    assert not any(name in output for name in ("default", "context", "if removed", "activated by", "in the text"))


def test_shifts_are_marked_in_the_text_without_colour_too():
    text = highlighted_text(literal_explanation())
    assert rendered(text, colour=None) == "not bad (↺ because of “not”) but great ↑ fun ↓ plot\n"
    assert "\x1b[1;3;9;32mbad" in rendered(text)
    assert "9;32mgreat" not in rendered(text)


@pytest.mark.parametrize("width", [40, 64, 80, 120])
def test_literal_words_and_their_causes_are_whole_at_any_width(width):
    output = rendered(explanation_panel(literal_explanation()), width, colour=None)
    assert all(len(line) <= width for line in output.splitlines())
    assert "…" not in output
    assert all(part in output for part in ("+0.75", "reversed", "“not”", "contribution"))


def test_a_cause_from_outside_is_shown_and_never_obeyed():
    output = rendered(explanation_panel(literal_explanation("\x1b[31mred[/]")))
    assert "\x1b[31mred" not in output
    assert "red[/]" in output
