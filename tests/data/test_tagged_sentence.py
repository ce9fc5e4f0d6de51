import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.data.tagged_sentence import TaggedSentence, split_words
from lexical_sae.data.tagging import Entity


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The U.S. team's third-place.", ["The", "U.S.", "team", "'s", "third-place", "."]),
        ("J. Doe met O'Brien (AT&T), 3.14", ["J.", "Doe", "met", "O'Brien", "(", "AT&T", ")", ",", "3.14"]),
        ("Oslo.", ["Oslo", "."]),
        ("won’t 1996-08-22!", ["won", "’t", "1996-08-22", "!"]),
        (" \t", []),
    ],
)
def test_words_are_cut_as_in_conll_data(text, words):
    assert [text[first:last] for first, last in split_words(text)] == words


@given(st.text(max_size=40))
def test_every_visible_character_is_in_one_word(text):
    spans = list(split_words(text))
    assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:], strict=False))
    covered = {i for first, last in spans for i in range(first, last)}
    assert {i for i in range(len(text)) if i not in covered} <= {i for i, c in enumerate(text) if c.isspace()}


def test_entities_are_found_in_the_text_as_it_was_written():
    text = "Acme  Corp. left Oslo"
    sentence = TaggedSentence(text, tuple(split_words(text)), ("B-ORG", "I-ORG", "O", "O", "B-LOC"))
    assert sentence.entities == (Entity("ORG", 0, 2), Entity("LOC", 4, 5))
    assert [sentence.written(entity) for entity in sentence.entities] == ["Acme  Corp", "Oslo"]
    assert sentence.as_dict()["entities"][1] == {
        "type": "LOC",
        "start": 4,
        "end": 5,
        "text": "Oslo",
        "characters": [17, 21],
    }


def test_given_words_stay_as_they_are():
    sentence = TaggedSentence.of_words(["New York", "", "!"], ["B-LOC", "O", "O"])
    assert sentence.words == ("New York", "", "!")


def test_a_tag_too_few_is_refused():
    with pytest.raises(ValueError, match="2 words and 1 tags"):
        TaggedSentence.of_words(["a", "b"], ["O"])
