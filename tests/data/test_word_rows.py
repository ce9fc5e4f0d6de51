import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.data.tagging import IGNORED, encode_tags, entity_spans
from lexical_sae.data.word_rows import cut, tokenize_words
from tests import tiny

NAMES = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
NOTHING = "\u200b"
"""A word that the tokenizer drops."""
WORDS = ["film", "filming", "unhappyness", "London", ".", "a", NOTHING]
sentences = st.lists(st.sampled_from(WORDS), max_size=60)


def decided(rows, tags, *, certainty=5.0):
    """Logits that say the given tags, word by word, in the order in which rows are read."""
    for row, sentence in enumerate(rows.sentences):
        words = [word for _, word in rows.first_tokens(row)]
        ids = torch.tensor(encode_tags([tags[sentence][word] for word in words], NAMES), dtype=torch.long)
        yield [(sentence, word) for word in words], certainty * torch.nn.functional.one_hot(ids, len(NAMES)).float()


@given(st.lists(sentences, max_size=4), st.integers(8, 30))
def test_every_word_is_read_once_in_rows_that_fit(given_sentences, max_length):
    rows = tokenize_words(tiny.wordpiece(), given_sentences, max_length)
    assert all(len(ids) <= max_length for ids in rows.texts.ids)
    read = [(rows.sentences[row], word) for row in range(len(rows.texts)) for _, word in rows.first_tokens(row)]
    wanted = [(s, w) for s, words in enumerate(given_sentences) for w, word in enumerate(words) if word != NOTHING]
    assert sorted(read) == wanted
    assert rows.unread() == [
        (s, w) for s, ws in enumerate(given_sentences) for w, word in enumerate(ws) if word == NOTHING
    ]


@given(st.lists(sentences.filter(bool), min_size=1, max_size=3), st.integers(8, 30), st.data())
def test_no_entity_is_lost_or_cut_where_rows_end(given_sentences, max_length, data):
    tags = []
    for words in given_sentences:
        # Words that nobody reads can neither open an entity nor end one.
        read = [at for at, word in enumerate(words) if word != NOTHING]
        own = ["O"] * len(words)
        if read:
            first, last = sorted(data.draw(st.lists(st.sampled_from(read), min_size=2, max_size=2)))
            own[first : last + 1] = ["B-PER", *["I-PER"] * (last - first)]
        tags.append(own)
    rows = tokenize_words(tiny.wordpiece(), given_sentences, max_length)
    decoded = rows.decode(decided(rows, tags), NAMES)
    assert [entity_spans(tags) for tags in decoded] == [entity_spans(own) for own in tags]


@pytest.mark.parametrize("tokenizer", [tiny.wordpiece, tiny.byte_bpe, tiny.sentencepiece])
def test_first_tokens_are_those_that_begin_each_word(tokenizer):
    words = ["the", "good", "Muslims", "film", ".", "acting"]
    rows = tokenize_words(tokenizer(), [words], 64)
    firsts = rows.first_tokens(0)
    assert [word for _, word in firsts] == list(range(len(words)))
    starts = [position for position, _ in firsts]
    for start, end, word in zip(starts, [*starts[1:], len(rows.texts.ids[0])], words, strict=True):
        ids = [i for i in rows.texts.ids[0][start:end] if i not in tokenizer().all_special_ids]
        written = tokenizer().decode(ids).replace(" ", "").replace("##", "").lower()
        assert written == word.lower() or tokenizer().unk_token_id in rows.texts.ids[0][start:end]


def test_a_sentence_of_5000_words_is_read_whole():
    rows = tokenize_words(tiny.wordpiece(), [["film"] * 5000], 64)
    assert sum(len(rows.first_tokens(row)) for row in range(len(rows.texts))) == 5000
    tags = [["O"] * 5000]
    tags[0][2000:2300] = ["B-LOC", *["I-LOC"] * 299]
    assert rows.decode(decided(rows, tags), NAMES) == [tuple(tags[0])]


def test_words_are_read_where_they_have_most_context():
    rows = tokenize_words(tiny.wordpiece(), [["film"] * 40], 12)
    for row in range(1, len(rows.texts) - 1):
        positions = [position for position, _ in rows.first_tokens(row)]
        # Not the first word after [CLS], nor the last before [SEP].
        assert min(positions) > 1
        assert max(positions) < len(rows.texts.ids[row]) - 2


def test_a_word_longer_than_a_row_is_read_by_its_beginning():
    rows = tokenize_words(tiny.byte_bpe(), [["the", "x" * 500, "film"]], 16)
    assert rows.unread() == []
    assert all(len(ids) <= 16 for ids in rows.texts.ids)


def test_labels_stand_at_first_tokens_only():
    rows = tokenize_words(tiny.wordpiece(), [["filming", NOTHING, "city"]], 16)
    assert rows.labels([[3, 4, 1]]) == [(IGNORED, 3, IGNORED, 1, IGNORED)]


def test_an_unread_word_is_in_an_entity_that_goes_on_after_it():
    rows = tokenize_words(tiny.wordpiece(), [[NOTHING, "film", NOTHING, "city", NOTHING], [NOTHING], []], 16)
    tags = [["O", "B-PER", "I-PER", "I-PER", "O"], ["O"], []]
    assert rows.decode(decided(rows, tags), NAMES) == [tuple(own) for own in tags]


@pytest.mark.parametrize(
    ("given_sentences", "message"),
    [(["a film"], "sentence 0 is a string; split it"), ([["a", 3]], "sentence 0, word 1 is int 3")],
)
def test_what_is_no_list_of_words_is_refused(given_sentences, message):
    with pytest.raises(ValueError, match=message):
        tokenize_words(tiny.wordpiece(), given_sentences, 16)


def test_tags_of_another_length_are_refused_with_the_sentence():
    rows = tokenize_words(tiny.wordpiece(), [["a"], ["good", "film"]], 16)
    with pytest.raises(ValueError, match="sentence 1 has 2 words and 1 tags"):
        rows.labels([[0], [0]])


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(1, 8))
def test_windows_cover_every_word_and_always_move_on(sizes, room):
    spans = list(cut(sizes, room))
    assert spans[0][0] == 0
    assert spans[-1][1] == len(sizes)
    assert all(a[0] < b[0] <= a[1] < b[1] for a, b in zip(spans, spans[1:], strict=False))
    assert all(sum(sizes[first:last]) <= room or last == first + 1 for first, last in spans)
