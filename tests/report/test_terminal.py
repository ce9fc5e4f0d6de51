import io

import pytest
from rich.console import Console

from splade.explanation import Explanation, WordContribution
from splade.progress import Step
from splade.report.progress import ProgressBars
from splade.report.terminal import explanation_panel, figures_table, shown


def rendered(thing, width=80) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system="truecolor")
    console.print(thing)
    return console.file.getvalue()


def explanation(**changes):
    words = tuple(WordContribution(f"word{i}", "word", 1.0, (-1) ** i * (10.0 - i)) for i in range(10))
    fields = {"text": "a text", "label": "positive", "probability": 0.93, "words": words, "bias": 0.25}
    return Explanation(**{**fields, "identity_error": 1e-7, "tokens_cut": 0, **changes})


def test_panel_shows_label_words_remainder_and_bias():
    output = rendered(explanation_panel(explanation(), top=3))
    for expected in (
        "positive",
        "93%",
        "word0",
        "+10.00",
        "word1",
        "-9.00",
        "3 other words for",
        "+12.00",
        "4 other words against",
        "-16.00",
        "+0.25",
        "sum",
        "+5.25",
        "bias at this input",
    ):
        assert expected in output
    assert "word3" not in output


def test_words_for_and_against_have_different_colours():
    output = rendered(explanation_panel(explanation(), top=2))
    assert "\x1b[32m█" in output
    assert "\x1b[31m█" in output


def test_a_text_that_was_cut_says_so():
    assert "12 tokens at the end were not read" in rendered(explanation_panel(explanation(tokens_cut=12)))


def test_a_text_without_words_still_shows():
    assert "no word is active: this is the bias alone" in rendered(explanation_panel(explanation(words=())))


def test_a_wrong_prediction_is_marked():
    assert "labelled negative" in rendered(explanation_panel(explanation(), labelled="negative"))
    assert "labelled" not in rendered(explanation_panel(explanation(), labelled="positive"))


def test_progress_in_a_log_says_something_every_tenth():
    console = Console(file=io.StringIO(), width=100, force_terminal=False)
    with ProgressBars(console) as bars:
        for done in range(1, 101):
            bars(Step("training", done, 100, {"loss": 0.5}))
    lines = [line for line in console.file.getvalue().splitlines() if line.startswith("training ")]
    assert len([line for line in lines if "/100" in line]) >= 10


@pytest.mark.parametrize(
    "nasty", ["[red]markup[/red]", "\x1b[31mescape", "bell\x07", "tab\there", "]0;title\x07", "[/]"]
)
def test_text_from_outside_is_shown_and_never_obeyed(nasty):
    word = WordContribution(nasty, "word", 1.0, 1.0)
    panel = explanation_panel(explanation(text=nasty, label=nasty, words=(word,)))
    output = rendered(panel)
    assert "\x07" not in output
    assert "\x1b[31mescape" not in output
    if nasty.startswith("[red]"):
        assert "[red]markup[/red]" in output


def test_shown_keeps_letters_of_any_script():
    assert shown("größe 漢字 مرحبا") == "größe 漢字 مرحبا"


def test_figures_are_named():
    output = rendered(figures_table("Title", [("accuracy", "81.0%", "a remark")]))
    assert all(word in output for word in ("Title", "accuracy", "81.0%", "a remark"))


def test_progress_bars_show_task_and_figures():
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    with ProgressBars(console) as bars:
        bars(Step("training", 1, 4, {"loss": 0.5}))
        bars(Step("training", 4, 4, {"loss": 0.25}))
        bars(Step("testing", 1, 2))
    output = console.file.getvalue()
    assert all(word in output for word in ("training", "4/4", "loss 0.25", "testing", "1/2"))
