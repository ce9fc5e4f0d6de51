import pytest

from lexical_sae.data.language import FUNCTION_WORDS, NEGATIONS, grouped_forms, is_function_word, joined_forms
from lexical_sae.data.vocabulary import Vocabulary
from lexical_sae.models.layers.neighbourhood import function_word_mask
from tests import tiny


def test_forms_of_one_word_are_together_and_nothing_else_is():
    words = ["film", "plot", "films", None, "plots", None, "filmed"]
    assert grouped_forms(words) == [[0, 2, 6], [1, 4], [3], [5]]
    assert sorted(place for group in grouped_forms(words) for place in group) == list(range(len(words)))


def test_forms_have_a_name_together():
    assert joined_forms(["film", "films"]) == "film/films"


def test_negations_carry_meaning_and_are_listed_apart():
    assert not FUNCTION_WORDS & NEGATIONS
    assert {"not", "never", "no", "without", "isn't"} <= NEGATIONS


@pytest.mark.parametrize("word", ["the", "The", "OF", "and", "i", "its", "would", "whether", "these"])
def test_function_words_are_known_in_any_case(word):
    assert is_function_word(word)


@pytest.mark.parametrize("word", ["film", "good", "not", "bad", "plot", "##and", "", "great", "never"])
def test_content_words_negations_and_pieces_are_none(word):
    assert not is_function_word(word)


def test_all_are_written_in_lower_case_without_spaces():
    for word in FUNCTION_WORDS | NEGATIONS:
        assert word == word.strip().lower()


def test_the_mask_finds_the_function_words_of_a_vocabulary():
    vocabulary = Vocabulary(tiny.wordpiece(), 60)
    found = {vocabulary.names[i] for i in function_word_mask(vocabulary).nonzero().flatten().tolist()}
    assert found == {"a", "an", "the", "is", "was", "and", "or", "very", "i", "you", "it"}
    with_negations = function_word_mask(vocabulary, negations=True)
    assert {vocabulary.names[i] for i in with_negations.nonzero().flatten().tolist()} == found | {"not"}


def test_the_mask_reads_words_through_the_tokenizer():
    vocabulary = Vocabulary(tiny.byte_bpe())
    tokens = {vocabulary.tokens[i] for i in function_word_mask(vocabulary).nonzero().flatten().tolist()}
    assert {"Ġthe", "Ġand"} <= tokens
    assert "Ġgood" not in tokens
