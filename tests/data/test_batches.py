import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.data.batches import TokenizedTexts, batches, length_buckets, shuffled_buckets, tokenize
from tests import tiny

TEXTS = ["good film", "a", "the very very good movie was not boring", "", "good film"]


def test_texts_are_padded_to_the_longest_of_their_batch():
    tokenized = tokenize(tiny.wordpiece(), TEXTS, 64)
    batch = tokenized.batch([0, 1])
    assert batch.input_ids.shape == (2, 4)
    assert batch.attention_mask.tolist() == [[True] * 4, [True, True, True, False]]
    assert batch.input_ids[1, 3] == tiny.wordpiece().pad_token_id
    assert batch.rows.tolist() == [0, 1]


def test_what_is_cut_is_counted():
    tokenized = tokenize(tiny.wordpiece(), TEXTS, 6)
    assert [len(ids) for ids in tokenized.ids] == [4, 3, 6, 2, 4]
    assert tokenized.tokens_cut == (0, 0, 4, 0, 0)
    assert tokenized.num_cut == 1


def test_special_tokens_typed_as_text_stay_text():
    tokenizer = tiny.wordpiece()
    (ids,) = tokenize(tokenizer, ["[SEP] good [MASK]"], 64).ids
    assert ids.count(tokenizer.sep_token_id) == 1
    assert tokenizer.mask_token_id not in ids


@pytest.mark.parametrize("text", ["", "   ", "\x00\x07", "\ud800", "😀‍👩", "مرحبا good", "x" * 100_000, "é", "e\u0301"])
def test_odd_texts_become_tokens(text):
    tokenized = tokenize(tiny.wordpiece(), [text], 16)
    assert 2 <= len(tokenized.ids[0]) <= 16


@pytest.mark.parametrize("text", [None, 3, b"bytes", float("nan"), ["nested"]])
def test_what_is_no_text_is_refused_with_its_row(text):
    with pytest.raises(ValueError, match="text 1 is "):
        tokenize(tiny.wordpiece(), ["good", text], 16)


def test_an_empty_list_is_fine():
    assert len(tokenize(tiny.wordpiece(), [], 16)) == 0
    assert list(length_buckets(tokenize(tiny.wordpiece(), [], 16), 4)) == []


@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=40), st.integers(1, 7))
def test_buckets_hold_every_row_once_longest_first(texts, batch_size):
    tokenized = tokenize(tiny.wordpiece(), texts, 64)
    buckets = list(length_buckets(tokenized, batch_size))
    assert sorted(row for bucket in buckets for row in bucket) == list(range(len(texts)))
    lengths = [len(tokenized.ids[row]) for bucket in buckets for row in bucket]
    assert lengths == sorted(lengths, reverse=True)
    assert all(len(bucket) <= batch_size for bucket in buckets)


def test_shuffled_buckets_put_texts_of_similar_length_together():
    texts = ["good " * (1 + i % 40) for i in range(400)]
    tokenized = tokenize(tiny.wordpiece(), texts, 64)
    buckets = shuffled_buckets(tokenized, 8, np.random.default_rng(0))
    spread = [max(ls) - min(ls) for b in buckets for ls in [[len(tokenized.ids[row]) for row in b]]]
    assert max(spread) <= 3
    first_lengths = [len(tokenized.ids[b[0]]) for b in buckets]
    assert first_lengths != sorted(first_lengths)


def test_short_texts_come_first_as_far_as_is_asked():
    tokenized = tokenize(tiny.wordpiece(), ["good " * (1 + i % 40) for i in range(400)], 64)

    def lengths(short_first):
        buckets = shuffled_buckets(tokenized, 8, np.random.default_rng(0), short_first)
        return np.array([np.mean([len(tokenized.ids[row]) for row in rows]) for rows in buckets])

    assert (np.diff(lengths(1.0)) >= 0).all()
    at_random, half = (np.corrcoef(np.arange(50), lengths(share))[0, 1] for share in (0.0, 0.67))
    assert abs(at_random) < 0.3
    assert 0.7 < half < 0.99


@given(st.integers(1, 60), st.integers(1, 7), st.integers(0, 99), st.sampled_from([0.0, 0.5, 1.0]))
def test_shuffled_buckets_hold_every_row_once_and_repeat_with_the_seed(rows, batch_size, seed, short_first):
    tokenized = tokenize(tiny.wordpiece(), (TEXTS * 12)[:rows], 64)
    first = shuffled_buckets(tokenized, batch_size, np.random.default_rng(seed), short_first)
    again = shuffled_buckets(tokenized, batch_size, np.random.default_rng(seed), short_first)
    assert first == again
    assert sorted(row for bucket in first for row in bucket) == list(range(rows))


def test_every_text_is_in_one_batch_which_is_reported_when_the_work_on_it_is_done():
    texts = TokenizedTexts(tuple([7] * length for length in (2, 5, 1, 3, 4)), (0,) * 5, pad_id=0)
    steps, worked = [], []
    for batch in batches(texts, 2, "counting", steps.append):
        assert len(steps) == len(worked), "a batch is not done before it is worked on"
        worked.append(batch.rows.tolist())
        assert batch.input_ids.shape[1] == texts.width(worked[-1])
    assert worked == [[1, 4], [3, 0], [2]]
    assert [(step.task, step.done, step.total) for step in steps] == [
        ("counting", 2, 5),
        ("counting", 4, 5),
        ("counting", 5, 5),
    ]
