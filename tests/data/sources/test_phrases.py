import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.data.examples import TextSplit
from lexical_sae.data.sources.phrases import hold_out_whole_sentences, whole_sentences, word_spans

PHRASES = st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=5).map(" ".join), min_size=1, max_size=25)


def contains(longer, shorter):
    return f" {shorter} " in f" {longer} "


@given(PHRASES)
def test_whole_sentences_are_those_no_longer_row_contains(texts):
    slow = [i for i, t in enumerate(texts) if not any(len(u) > len(t) and contains(u, t) for u in texts)]
    assert whole_sentences(texts) == slow


def test_word_spans_are_all_runs_of_words():
    assert list(word_spans("a b c")) == ["a", "a b", "a b c", "b", "b c", "c"]


def test_nothing_left_in_train_overlaps_a_validation_sentence():
    rng = np.random.default_rng(0)
    sentences = [" ".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), 8)) for _ in range(200)]
    texts = sentences + [" ".join(s.split()[i : i + 3]) for s in sentences for i in range(0, 6, 3)] + ["a", "b c"]
    split = TextSplit(tuple(texts), tuple(i % 2 for i in range(len(texts))))
    plan = hold_out_whole_sentences(split, tuple(split.keys()), rng)
    held_out = [texts[i] for i in plan.held_out]
    gone = {*plan.held_out, *plan.dropped}
    left = [text for i, text in enumerate(texts) if i not in gone]
    assert len(held_out) == 50
    assert set(held_out) <= set(sentences)
    assert not any(contains(v, t) or contains(t, v) for v in held_out for t in left)
    # Nothing is dropped that did not have to be.
    assert all(any(contains(v, texts[i]) for v in held_out) for i in plan.dropped)
