"""Whatever somebody types, a model with literal words shows words of the text, or says what is missing."""

import io
import re
import unicodedata

import pytest
from rich.console import Console

from lexical_sae.data import TextDataset, TextSplit
from lexical_sae.inference import explain, explain_windows, find_reasons
from lexical_sae.report.explanation.html import explained_text
from lexical_sae.report.explanation.reasons import reasons_panel
from lexical_sae.report.explanation.terminal import explanation_panel
from lexical_sae.report.html_templates import templates
from lexical_sae.runs.calibrating import calibrate
from tests import tiny
from tests.literal import literal_model

TEXTS = {
    "empty": "",
    "blank": " \t\u3000\n",
    "emojis": "😀👍🏽❤️",
    "one word": "Meh.",
    "one long word": "a" * 100_000,
    "long words": f"{'film' * 5000} good {'x' * 300}",
    "many words": "a good film is not a bad film " * 375,
    "right to left": "הסרט film هذا good",
    "accents apart": "ame\u0301lie was a cliche\u0301, good",
    "script": "<script>alert('good')</script> film",
    "special tokens": "[MASK] [CLS] a good film [SEP] [UNK] [PAD]",
    "control characters": "a \0good\0 \x1b[31mfilm\x07 \ud83d",
    "numbers": "10 2nd 1,000 3.5 £5",
}
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


@pytest.fixture(scope="module")
def model():
    made = literal_model()
    split = TextSplit(tuple(tiny.GOOD * 8 + tiny.BAD * 8), tuple([2] * 32 + [0] * 32))
    made.calibration = calibrate(made, TextDataset("made", ("negative", "neutral", "positive"), split, split, split))
    return made


def printed(view, width):
    console = Console(width=width, file=io.StringIO())
    console.print(view)
    return console.file.getvalue()


def plain(text):
    return "".join(c for c in unicodedata.normalize("NFD", text.casefold()) if not unicodedata.combining(c))


@pytest.mark.parametrize("name", TEXTS)
def test_all_views_show_it_and_name_no_word_that_is_not_there(model, name):
    why = explain(model, TEXTS[name], causes=True)
    assert all(word.word in plain(TEXTS[name]) for word in why.words)
    assert why.words or why.warnings
    for width in (30, 120):
        assert why.label in printed(explanation_panel(why), width)
    for html in (
        why._repr_html_(),
        str(templates().get_template("explained_text.html.j2").module.reasons(explained_text(why, 8))),
    ):
        assert "<script" not in html
        assert not _CONTROLS.search(html)
    if why.words:
        printed(reasons_panel(find_reasons(model, TEXTS[name], max_nodes=50)), 80)


@pytest.mark.parametrize("name", ["one long word", "long words"])
def test_a_word_without_end_does_not_fill_the_screen_and_is_said_to_be_unread(model, name):
    shown = printed(explanation_panel(explain(model, TEXTS[name])), 100)
    assert len(shown.splitlines()) < 30
    assert "…" in shown
    assert "The tokenizer cannot read" in shown
    assert "no feature stands for that" in shown


def test_what_was_not_read_of_a_long_text_is_said_and_windows_read_it(model):
    why = explain(model, TEXTS["many words"])
    assert f"{why.tokens_cut} tokens at the end were not read" in printed(explanation_panel(why), 400)
    assert explain_windows(model, TEXTS["many words"])[-1].end >= len(TEXTS["many words"].rstrip())


def test_an_accent_apart_is_the_same_word_to_warnings():
    known = TextSplit(("a cliché", "a café") * 20, (0, 2) * 20)
    made = literal_model()
    made.calibration = calibrate(made, TextDataset("made", ("negative", "neutral", "positive"), known, known, known))
    messages = [warning.message for warning in explain(made, "a cliche\u0301 a cafe\u0301").warnings]
    assert not any("never occur" in message for message in messages)
