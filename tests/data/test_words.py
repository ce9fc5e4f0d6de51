import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from lexical_sae.data.batches import tokenize
from lexical_sae.data.tables.cell_values import repair_text
from lexical_sae.data.words import _WORD, TextLayout, lay_out, word_spans
from tests import tiny


@functools.cache
def prefixed_bpe():
    """Byte-level BPE as RoBERTa has it: a space put before the first word, offsets without spaces, special tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=tiny.SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(tiny.CORPUS, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("[SEP]", 4), ("[CLS]", 3), add_prefix_space=True)
    return tiny._wrapped(tokenizer)


@functools.cache
def unsplit_unigram():
    """A Unigram model over whole texts, as SentencePiece may be trained: a piece may hold two words."""
    pieces = ["▁New▁York", "▁good", "▁film", "▁", "電影", "fi", *"goodfilmNewYork,!電影"]
    scores = [(piece, 0.0) for piece in tiny.SPECIALS] + [(piece, -float(i + 1)) for i, piece in enumerate(pieces)]
    tokenizer = Tokenizer(models.Unigram(scores, unk_id=2))  # pyright: ignore[reportCallIssue]
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(split=False)
    tokenizer.decoder = decoders.Metaspace()
    return tiny._wrapped(tokenizer)


TOKENIZERS = {
    "wordpiece": tiny.wordpiece,
    "byte_bpe": tiny.byte_bpe,
    "prefixed_bpe": prefixed_bpe,
    "sentencepiece": tiny.sentencepiece,
    "unsplit_unigram": unsplit_unigram,
}
ANY_TEXT = st.text(st.characters(), max_size=30) | st.text("ab '.,1-😀‍👩ש電ー\u0301\n ", max_size=30)
"""Any characters at all, lone surrogates and NUL among them, or some that meet in tricky ways."""


def layout(kind: str, text: str, max_length: int = 64) -> TextLayout:
    tokenizer = TOKENIZERS[kind]()
    return lay_out(tokenizer, text, tokenize(tokenizer, [text], max_length).ids[0])


def words(found: TextLayout) -> list[str]:
    return [found.written(span) for span in found.word_spans]


def tokens_of(found: TextLayout, word: str) -> int:
    """How many tokens lie in the first such word."""
    return found.token_words.count(words(found).index(word))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Isn't it 3.14, really?", ["Isn't", "it", "3.14", ",", "really", "?"]),
        ("the dogs' well-made 'plot'.", ["the", "dogs", "'", "well", "-", "made", "'", "plot", "'", "."]),
        ("1,000. 2", ["1,000", ".", "2"]),
        ("cafe\u0301s été", ["cafe\u0301s", "été"]),
        ("👩‍👩‍👧 🇩🇪🇫🇷 👍🏽!", ["👩‍👩‍👧", "🇩🇪", "🇫🇷", "👍🏽", "!"]),
        ("शब्द می‌خواهم שָׁלוֹם", ["शब्द", "می‌خواهم", "שָׁלוֹם"]),
        ("電影ー good", ["電", "影", "ー", "good"]),
        ("영화 좋다", ["영화", "좋다"]),
        ("\u0600 5", ["\u0600", "5"]),
        (" \n\t\x1f ", []),
        ("", []),
    ],
    ids=[
        "contraction",
        "marks",
        "numbers",
        "accents",
        "emoji",
        "scripts",
        "unspaced",
        "korean",
        "prefix",
        "blank",
        "empty",
    ],
)
def test_words_are_what_a_reader_sees(text, expected):
    assert [text[start:end] for start, end in word_spans(text)] == expected


@given(ANY_TEXT)
def test_words_hold_every_character_that_is_not_blank_once(text):
    spans = list(word_spans(text))
    inside = [i for start, end in spans for i in range(start, end)]
    assert inside == sorted(set(inside))
    assert all(text[i].isspace() for i in set(range(len(text))) - set(inside))
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in spans)


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("text", ["good film", "  good   film\n", "good\tfilm "])
def test_spans_point_into_the_text_whatever_the_tokenizer_does_with_spaces(kind, text):
    found = layout(kind, text)
    start = text.index("good"), text.index("film")
    assert found.word_spans == tuple((at, at + 4) for at in start)
    assert {found.token_words[i] for i, span in enumerate(found.token_spans) if span == found.word_spans[0]} <= {0}


@pytest.mark.parametrize("kind", ["wordpiece", "byte_bpe", "prefixed_bpe", "sentencepiece"])
def test_subwords_are_put_together_again(kind):
    found = layout(kind, "unhappyly, unhappyly film")
    assert words(found) == ["unhappyly", ",", "unhappyly", "film"]
    assert tokens_of(found, "unhappyly") > 1


def test_special_tokens_belong_to_no_word():
    found = layout("wordpiece", "unhappy film!")
    assert found.token_words == (None, 0, 0, 1, 2, None)
    assert found.token_spans == ((0, 0), (0, 2), (2, 7), (8, 12), (12, 13), (0, 0))


def test_special_tokens_typed_as_text_are_text():
    found = layout("wordpiece", "good [SEP] film")
    assert words(found) == ["good", "[", "SEP", "]", "film"]
    assert found.token_words.count(None) == 2


def test_a_blank_token_goes_with_the_letters_that_the_tokenizer_keeps_it_with():
    tokenizer = tiny.byte_bpe()
    found = layout("byte_bpe", "good  Film\n")
    pieces = dict(zip(zip(found.token_spans, found.token_words, strict=True), found.token_ids, strict=True))
    named = {key: tokenizer.convert_ids_to_tokens(i) for key, i in pieces.items()}
    assert named[(5, 6), 1] == "Ġ", "the space before the rare word belongs to it"
    assert named[(4, 5), None] == "Ġ", "a loose space belongs to no word"
    assert named[(10, 11), None] == "Ċ"


def test_the_mark_of_a_new_word_goes_with_its_letters():
    found = layout("sentencepiece", "good ran")
    assert words(found) == ["good", "ran"]
    assert found.token_words == (0, 1, 1, 1, 1)


def test_words_that_one_token_covers_are_one_word():
    assert words(layout("unsplit_unigram", "good New York!")) == ["good", "New York", "!"]
    assert words(layout("unsplit_unigram", "電影!")) == ["電影", "!"]
    assert words(layout("wordpiece", "good 電影")) == ["good", "電", "影"]


def test_characters_that_normalisation_takes_apart_keep_their_place():
    found = layout("unsplit_unigram", "good ﬁlm")
    assert [found.text[slice(*span)] for span in found.word_spans] == ["good", "ﬁlm"]


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_two_halves_of_a_surrogate_pair_count_as_the_two_characters_they_were(kind):
    text = "a \ud83d\ude00 film \ud83d"
    found = layout(kind, text)
    assert (5, 9) in found.word_spans
    assert all(c < "\ud800" or c > "\udfff" for span in found.word_spans for c in found.written(span))
    if kind == "byte_bpe":
        assert found.word_spans == ((0, 1), (2, 4), (5, 9), (10, 11))


@pytest.mark.parametrize("kind", TOKENIZERS)
@given(text=ANY_TEXT, max_length=st.integers(2, 24))
def test_every_visible_token_lies_in_its_word_and_every_word_has_a_token(kind, text, max_length):
    found = layout(kind, text, max_length)
    spans = found.word_spans
    assert list(spans) == sorted(spans)
    assert all(before[1] <= after[0] for before, after in zip(spans, spans[1:], strict=False))
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert set(found.token_words) - {None} == set(range(len(spans)))
    for (start, end), word in zip(found.token_spans, found.token_words, strict=True):
        is_visible = repair_text(text[start:end]).strip() != ""
        if is_visible:
            assert word is not None
            assert spans[word][0] <= start
            assert end <= spans[word][1]


@given(ANY_TEXT)
def test_a_byte_level_tokenizer_leaves_no_visible_character_without_a_word(text):
    tokenizer = tiny.byte_bpe()
    found = lay_out(tokenizer, text, tokenize(tokenizer, [text], 1000).ids[0])
    inside = {i for start, end in found.word_spans for i in range(start, end)}
    assert all(text[i].isspace() or text[i] == "\0" for i in set(range(len(text))) - inside)


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_what_was_cut_off_is_no_word(kind):
    text = "good film " * 20
    found = layout(kind, text, 7)
    assert len(found) == 7
    assert 0 < len(found.word_spans) <= 7
    assert words(found) == text.split()[: len(found.word_spans)]


def test_a_word_that_is_cut_in_two_is_named_whole():
    assert words(layout("wordpiece", "good unhappy", 4)) == ["good", "unhappy"]


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("text", ["", " ", "\0"])
def test_a_text_without_words_has_none(kind, text):
    found = layout(kind, text)
    assert found.word_spans == ()
    assert set(found.token_words) <= {None}


def test_token_ids_without_special_tokens_are_fine():
    tokenizer = tiny.wordpiece()
    ids = tokenizer("unhappy film", add_special_tokens=False)["input_ids"]
    assert lay_out(tokenizer, "unhappy film", ids).token_words == (0, 0, 1)
    assert lay_out(tokenizer, "unhappy film", ids[:2]).token_words == (0, 0)


def test_token_ids_of_another_text_are_refused():
    tokenizer = tiny.wordpiece()
    (ids,) = tokenize(tokenizer, ["good film"], 64).ids
    for text, wrong in (("bad film", ids), ("good film", [*ids, 0]), ("good film", ids[::-1])):
        with pytest.raises(ValueError, match="not what the tokenizer makes of"):
            lay_out(tokenizer, text, wrong)


def test_a_tokenizer_without_offsets_is_refused(monkeypatch):
    tokenizer = tiny.wordpiece()
    monkeypatch.setattr(type(tokenizer), "is_fast", False)
    with pytest.raises(ValueError, match="keeps no character offsets"):
        lay_out(tokenizer, "good", [9])


def test_words_are_joined_where_asked():
    found = layout("wordpiece", "good unhappy film, bad film")
    joined = found.joined([(3, 9), (19, 27)])
    assert words(joined) == ["good unhappy", "film", ",", "bad film"]
    assert joined.token_words == (None, 0, 0, 0, 1, 2, 3, 3, None)
    assert found.joined([]) == found
    assert words(found.joined([(0, 6), (6, 14)])) == ["good unhappy film", ",", "bad", "film"]


@pytest.mark.parametrize("span", [(-1, 2), (2, 2), (3, 100)], ids=["before", "empty", "after"])
def test_a_span_outside_the_text_is_refused(span):
    with pytest.raises(ValueError, match="is not inside the text of 9 characters"):
        layout("wordpiece", "good film").joined([span])


@given(st.one_of(st.text(st.characters(max_codepoint=127), max_size=20), st.text("ab1.,'_ \r\n\x1c-", max_size=20)))
def test_words_of_ascii_are_those_of_the_pattern_for_all_characters(text):
    slow = [(found.start(), found.start() + len(found.group().rstrip())) for found in _WORD.finditer(text)]
    assert list(word_spans(text)) == slow
