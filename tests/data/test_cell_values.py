from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.data.batches import tokenize
from lexical_sae.data.tables.cell_values import repair_text
from tests import tiny


def test_a_lone_surrogate_becomes_one_replacement_character_and_a_pair_its_character():
    assert repair_text("a\ud83db\udc00") == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"
    assert repair_text("\ud83d\ude00") == "\N{GRINNING FACE}"
    assert repair_text("a\0b") == "a b"


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_a_whole_text_is_left_alone(text):
    assert repair_text(text) == text


@given(st.text(st.characters(categories=["Cs", "Lu", "Cc"])))
def test_tokens_are_those_of_the_repaired_text(text):
    tokenizer = tiny.wordpiece()
    assert tokenize(tokenizer, [text], 16).ids == tokenize(tokenizer, [repair_text(text)], 16).ids


def test_tokens_of_a_broken_character_are_those_of_the_replacement_character():
    tokenizer = tiny.wordpiece()
    broken, replaced = tokenize(tokenizer, ["good \ud83d", "good \N{REPLACEMENT CHARACTER}"], 16).ids
    assert broken == replaced
    assert tokenize(tokenizer, ["good\0film"], 16).ids == tokenize(tokenizer, ["good film"], 16).ids
