import io

import pytest
from rich.console import Console

from lexical_sae.explanation import Reasons, WordSet
from lexical_sae.report.explanation.reasons import reasons_panel

MINIMAL = WordSet(("warm", "[b]funny"), "negative", 2, is_minimal=True, is_impossible=False)
STOPPED = WordSet(("warm", "funny"), "negative", 1, is_minimal=False, is_impossible=False)
IMPOSSIBLE = WordSet(None, None, 4, is_minimal=False, is_impossible=True)
UNKNOWN = WordSet(None, None, 2, is_minimal=False, is_impossible=False)
NOTHING = WordSet((), "positive", 0, is_minimal=True, is_impossible=False)


def told(flip: WordSet, enough: WordSet = NOTHING, **changes) -> str:
    fields = {
        "text": "a\x1b text",
        "label": "positive",
        "probability": 0.9,
        "num_words": 3,
        "tokens_cut": 0,
        "to": None,
    }
    console = Console(file=io.StringIO(), width=100)
    console.print(reasons_panel(Reasons(**{**fields, **changes}, flip=flip, enough=enough)))
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (told(MINIMAL), "Without 2 words it is negative: warm, [b]funny"),
        (told(MINIMAL), "No smaller set of words does it: proved."),
        (told(STOPPED), "Fewer than 1 word cannot do it: proved."),
        (told(IMPOSSIBLE), "No removal of words can change the decision: proved"),
        (told(IMPOSSIBLE, to="neutral"), "No removal of words can make it neutral"),
        (told(UNKNOWN), "No removal was found to change the decision; fewer than 2 words cannot: proved."),
        (told(MINIMAL, NOTHING), "With no word at all it is positive too"),
        (told(MINIMAL, WordSet(("warm",), "positive", 1, True, False)), "1 word alone is enough for it: warm"),
        (told(MINIMAL, UNKNOWN), "No smaller set of words was found that is enough"),
        (told(MINIMAL, tokens_cut=7), "7 tokens at the end were not read"),
    ],
    ids=range(10),
)
def test_only_what_is_proved_is_claimed(output, said):
    assert said in output
    assert "\x1b" not in output


def test_a_stopped_search_claims_no_minimum():
    assert "No smaller set" not in told(STOPPED)


def test_pieces_of_a_set_are_counted_unless_all_tokens_are_asked_for():
    some = WordSet(("warm", "##ual", "."), "negative", 3, True, False, ("##ual", "."))
    assert "Without 3 words it is negative: warm, 2 pieces and symbols" in told(some)
    assert "Without 3 words it is negative: warm, ##ual, ." in told(some, all_tokens=True)
