import copy

import pytest
import torch
from tokenizers import AddedToken, Tokenizer, models
from transformers import PreTrainedTokenizerFast

from lexical_sae.data.dimensions import Dimension, DimensionTable
from lexical_sae.data.language import plural
from lexical_sae.data.vocabulary import Vocabulary, get_clean_vocab_mask
from lexical_sae.models.layers.virtual_expander import VirtualExpander
from tests import tiny

TOKENIZERS = {"wordpiece": tiny.wordpiece, "byte_bpe": tiny.byte_bpe, "sentencepiece": tiny.sentencepiece}


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_words_are_named_without_the_tokenizers_own_marks(kind):
    vocabulary = Vocabulary(TOKENIZERS[kind]())
    (token_id,) = vocabulary.tokenizer(" good" if kind == "byte_bpe" else "good", add_special_tokens=False)["input_ids"]
    assert vocabulary.names[token_id] == "good"
    assert vocabulary.clean_mask[token_id]


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_clean_mask_shows_no_continuation_special_or_spare_dimension(kind):
    tokenizer = TOKENIZERS[kind]()
    vocabulary = Vocabulary(tokenizer, size=len(tokenizer) + 5)
    shown = [vocabulary.names[i] for i in vocabulary.clean_mask.nonzero().flatten().tolist()]
    assert "good" in shown
    assert not any(name.startswith(("##", "[", "Ġ", "▁")) for name in shown)
    assert not vocabulary.clean_mask[-5:].any()
    assert not vocabulary.feature_mask[-5:].any()


def test_special_and_unused_tokens_are_no_features():
    vocabulary = Vocabulary(tiny.wordpiece())
    assert not vocabulary.feature_mask[: len(tiny.SPECIALS)].any()
    assert vocabulary.feature_mask[len(tiny.SPECIALS) :].all()


def test_added_special_and_unused_tokens_are_no_features():
    tokenizer = copy.deepcopy(tiny.wordpiece())
    tokenizer.add_tokens([AddedToken("<extra>", special=True), AddedToken("<unused7>"), AddedToken("newword")])
    assert Vocabulary(tokenizer).feature_mask[-3:].tolist() == [False, False, True]


def test_continuations_are_named_as_such():
    vocabulary = Vocabulary(tiny.wordpiece())
    names = dict(zip(vocabulary.tokens, vocabulary.names, strict=True))
    assert names["##ing"] == "##ing"
    assert names["play"] == "play"
    assert not vocabulary.clean_mask[vocabulary.tokens.index("##ing")]


def test_a_vocabulary_without_punctuation_has_names_too():
    whole = tiny.wordpiece()
    backend = Tokenizer(models.WordPiece({"[UNK]": 0, "a": 1, "good": 2, "##ing": 3}, unk_token="[UNK]"))  # pyright: ignore[reportCallIssue]
    backend.pre_tokenizer, backend.decoder = whole.backend_tokenizer.pre_tokenizer, whole.backend_tokenizer.decoder
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]")
    assert Vocabulary(tokenizer).names == ("[UNK]", "a", "good", "##ing")


def test_byte_level_tokens_that_are_no_text_keep_their_own_spelling():
    vocabulary = Vocabulary(tiny.byte_bpe())
    lone_byte = vocabulary.tokens.index("Ã")
    assert vocabulary.names[lone_byte] == "Ã"
    assert not vocabulary.clean_mask[lone_byte]


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("spelling", ["muslim", "Muslim", " muslim "])
def test_a_word_is_found_whatever_the_tokenizer_calls_it(kind, spelling):
    vocabulary = Vocabulary(TOKENIZERS[kind]())
    match = vocabulary.find(spelling)
    assert match.ids
    assert {vocabulary.names[i].lower().removeprefix("##") for i in match.ids} <= {"muslim", "muslims"}


def test_case_variants_with_and_without_space_are_all_found_in_a_cased_vocabulary():
    vocabulary = Vocabulary(tiny.byte_bpe())
    found = {vocabulary.tokens[i] for i in vocabulary.find("muslim").ids}
    assert {"Ġmuslim", "ĠMuslim", "Muslim", "ĠMUSLIM"} <= found


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_name_stands_for_one_dimension(kind):
    names = Vocabulary(TOKENIZERS[kind]()).names
    assert len(set(names)) == len(names)


def test_punctuation_is_no_continuation_even_where_decoding_drops_the_space():
    vocabulary = Vocabulary(tiny.wordpiece())
    assert [vocabulary.names[vocabulary.tokens.index(mark)] for mark in ".,!?"] == [".", ",", "!", "?"]


def test_sense_slots_are_found_with_their_word():
    vocabulary = Vocabulary(tiny.wordpiece())
    slots = [Dimension("bank@sense1", "sense"), Dimension("film@sense1", "sense")]
    table = DimensionTable(vocabulary, slots)
    assert table.names(table.find("bank")) == ["bank", "bank@sense1"]
    assert table.names(table.find("film")) == ["film", "films", "film@sense1"]
    with pytest.raises(ValueError, match="cuts it into"):
        table.find("unhappy")


def test_plural_is_found_with_the_singular():
    vocabulary = Vocabulary(tiny.wordpiece())
    assert {vocabulary.names[i] for i in vocabulary.find("cities").ids} == {"city", "cities"}
    assert {vocabulary.names[i] for i in vocabulary.find("i").ids} == {"i"}
    assert {vocabulary.names[i] for i in vocabulary.find("city").ids} == {"city", "cities"}
    assert {vocabulary.names[i] for i in vocabulary.find("church").ids} == {"church", "churches"}


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("unhappy", r"cuts it into un \+ ##happy"),
        ("[MASK]", "special or unknown"),
        ("☃", "special or unknown"),
        ("  ", "empty"),
        ("goood", "no dimension|special or unknown"),
    ],
)
def test_a_word_without_a_dimension_is_refused_with_the_reason(word, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary(tiny.wordpiece()).require(word)


def test_vocabulary_smaller_than_its_tokenizer_is_refused():
    with pytest.raises(ValueError, match="do not belong together"):
        Vocabulary(tiny.wordpiece(), size=10)


def test_dimension_table_covers_words_then_what_parts_append():
    vocabulary = Vocabulary(tiny.wordpiece())
    table = DimensionTable(vocabulary, [Dimension("bank@sense1", "sense")])
    assert len(table) == vocabulary.size + 1
    assert table[vocabulary.size] == Dimension("bank@sense1", "sense")
    bank = vocabulary.tokens.index("bank")
    assert table[bank] == Dimension("bank", "word")
    assert table.names([bank, vocabulary.size]) == ["bank", "bank@sense1"]
    assert table.feature_mask[-1]
    with pytest.raises(IndexError, match="does not exist"):
        table[len(table)]


def test_clean_mask_function_equals_the_vocabularys():
    assert torch.equal(get_clean_vocab_mask(tiny.wordpiece()), Vocabulary(tiny.wordpiece()).clean_mask)


@pytest.mark.parametrize(("one", "many"), [("dog", "dogs"), ("city", "cities"), ("boy", "boys"), ("box", "boxes")])
def test_plural_follows_the_rules_of_spelling(one, many):
    assert plural(one) == many


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_dimension_is_a_word_where_the_clean_mask_says_so_and_else_a_piece(kind):
    table = DimensionTable(
        Vocabulary(TOKENIZERS[kind]()), [Dimension("mawkish", "word"), Dimension("##s@sense1", "piece")]
    )
    kinds = [table[i].kind for i in range(len(table))]
    assert set(kinds) == {"word", "piece"}
    assert [kind == "word" for kind in kinds] == table.clean_mask.tolist()
    assert torch.equal(table.listed_mask(), table.clean_mask)
    assert table.listed_mask(all_tokens=True).all()


def test_sense_slots_of_a_piece_are_pieces_and_written_alike():
    vocabulary = Vocabulary(tiny.wordpiece())
    ids = tuple(vocabulary.tokens.index(token) for token in ("bank", "##ing"))
    word, piece = VirtualExpander.Config(token_ids=ids, num_senses=2).dimensions(vocabulary)
    assert (word.kind, word.letters) == ("sense", "bank")
    assert (piece.kind, piece.letters) == ("piece", "ing")


@pytest.mark.parametrize("written", ["10", "2nd", "90s", "½", "£5"])
def test_numbers_are_words_where_a_table_says_so(monkeypatch, written):
    monkeypatch.setattr(tiny, "WORDS", [*tiny.WORDS, written, "##10"])
    vocabulary = Vocabulary(tiny.wordpiece.__wrapped__())
    plain, literal = (
        DimensionTable(vocabulary),
        DimensionTable(vocabulary, numbers=True).with_appended([Dimension("x", "word")]),
    )
    number, part = vocabulary.tokens.index(written), vocabulary.tokens.index("##10")
    assert (plain[number].kind, literal[number].kind) == ("piece", "word")
    assert (plain[part].kind, literal[part].kind) == ("piece", "piece")
    assert literal.clean_mask.sum() == plain.clean_mask.sum() + 2
    assert literal.clean_mask[number]
